// What happens after an order: its handlers inject a service that injects the outbox, and there is no cycle in that.
import { Inject, Injectable, Logger, Module } from '@nestjs/common'
import { type HandledEventOf, OnOutboxEvent } from 'aftercommit/nestjs'
import { events } from './events.ts'
import { OrdersModule, OrdersService } from './orders.ts'

/** Stands in for a mail server. */
@Injectable()
export class Mailer {
  readonly #logger = new Logger(Mailer.name)

  async send(to: string, text: string, _signal: AbortSignal): Promise<void> {
    this.#logger.log(`to ${to}: ${text}`)
  }
}

@Injectable()
class Confirmations {
  constructor(
    @Inject(OrdersService) private readonly orders: OrdersService,
    @Inject(Mailer) private readonly mailer: Mailer,
  ) {}

  @OnOutboxEvent(events, 'OrderPlaced')
  async confirm({ payload }: HandledEventOf<typeof events, 'OrderPlaced'>): Promise<void> {
    await this.orders.confirm(payload.orderId)
  }

  @OnOutboxEvent(events, 'OrderConfirmed')
  async write(
    { payload }: HandledEventOf<typeof events, 'OrderConfirmed'>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.mailer.send(payload.customer, `order ${payload.orderId} is confirmed`, signal)
  }
}

@Module({ imports: [OrdersModule], providers: [Mailer, Confirmations] })
export class ConfirmationsModule {}
