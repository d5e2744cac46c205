// The connection string: what is wrong with it, and how it is kept out of everything that is printed.

/** Never quotes the string, which holds a password. */
export function databaseUrlProblem(url: string): string | null {
  if (/^postgres(ql)?:\/\/./.test(url)) return null
  // In quotes, so that withoutSecrets() leaves them alone.
  return 'the database URL must begin with "postgres://" or "postgresql://", followed by user:password@host:5432/database'
}

/** The text without the connection string and its password. */
export function withoutSecrets(text: string, url: string | null): string {
  const secrets = url === null ? [] : [url, ...passwordsIn(url)]
  const safe = secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text)
  // One that was given to another option, or misspelt.
  return safe.replaceAll(/[a-z][\w+.-]*:\/+[^\s'"]*@[^\s'"]*|postgres(ql)?:\/\/[^\s'"]+/gi, '***')
}

/** Such as `db.example.com:5432`, for an error about the connection. */
export function hostOf(url: string): string {
  // Of a password with an unescaped slash, the beginning would pass for the host.
  const [address = ''] = url.split('?')
  if (/\/\/.*\/.*@/.test(address)) return 'the host'
  return (URL.canParse(url) && new URL(url).host) || 'the host'
}

function passwordsIn(url: string): string[] {
  const [, before = ''] = /^\w+:\/\/[^:@/]*:(.*)@/.exec(url) ?? []
  const [, inQuery = ''] = /[?&]password=([^&#]*)/.exec(url) ?? []
  const passwords = [before, inQuery].flatMap((raw) => [raw, decode(raw)])
  return [...new Set(passwords)].filter((password) => password.length > 2)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
