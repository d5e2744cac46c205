// GET /health, with @nestjs/terminus.
import { Controller, Get, Inject, Module } from '@nestjs/common'
import {
  HealthCheck,
  type HealthCheckResult,
  HealthCheckService,
  TerminusModule,
} from '@nestjs/terminus'
import { OutboxHealthIndicator } from 'aftercommit/nestjs'

@Controller('health')
class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(OutboxHealthIndicator) private readonly outbox: OutboxHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    return this.health.check([() => this.outbox.isHealthy('outbox', { maxPending: 10_000 })])
  }
}

@Module({ imports: [TerminusModule.forRoot({ logger: false })], controllers: [HealthController] })
export class HealthModule {}
