// What an application reads from its environment. A class stands in for @nestjs/config here.
import { Injectable, Module } from '@nestjs/common'

@Injectable()
export class Settings {
  readonly databaseUrl = process.env['DATABASE_URL'] ?? 'postgres://localhost/shop'
}

@Module({ providers: [Settings], exports: [Settings] })
export class SettingsModule {}
