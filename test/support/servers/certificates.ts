// A private certificate authority and a broker's certificate that it signed, made anew for each run by the keytool that
// comes with Java. Whoever does not know the authority does not trust the broker.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OwnedFolder } from './owned-folder.ts'
import { runToEnd } from './server-process.ts'

export type Certificates = {
  /** The certificate of the authority, as PEM, for clients. */
  readonly ca: string
  /** The broker's key and certificate, as PKCS12. */
  readonly keystore: string
  readonly password: string
}

/** For 127.0.0.1 alone, so that any other name of this machine does not fit. */
export async function makeCertificates(folder: OwnedFolder): Promise<Certificates> {
  const keystore = join(folder.path, 'broker.p12')
  const authority = join(folder.path, 'authority.pem')
  const password = 'of-a-throw-away-keystore'
  const store = ['-keystore', keystore, '-storetype', 'PKCS12', '-storepass', password]
  const keytool = (command: string, ...args: string[]) =>
    runToEnd(folder, 'keytool', ['-J-XX:-UsePerfData', command, ...store, ...args], {
      endSignal: 'KILL',
    })
  const key = ['-keyalg', 'EC', '-groupname', 'secp256r1', '-validity', '2']
  await keytool('-genkeypair', ...key, '-alias', 'ca', '-dname', 'CN=test-ca', '-ext', 'bc:c')
  const signed = ['-signer', 'ca', '-ext', 'san=ip:127.0.0.1']
  await keytool('-genkeypair', ...key, '-alias', 'broker', '-dname', 'CN=broker', ...signed)
  await keytool('-exportcert', '-rfc', '-alias', 'ca', '-file', authority)
  // A broker would take the first key that it finds.
  await keytool('-delete', '-alias', 'ca')
  return { ca: await readFile(authority, 'utf8'), keystore, password }
}
