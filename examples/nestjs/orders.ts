// The orders: a controller, and a service whose transactions emit.
import {
  BadRequestException,
  Body,
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
} from '@nestjs/common'
import { eq } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { InjectOutbox, InjectOutboxDb } from 'aftercommit/nestjs'
import { orders } from './database.ts'
import type { ShopOutbox } from './events.ts'

type Order = typeof orders.$inferSelect

@Injectable()
export class OrdersService {
  constructor(
    @InjectOutbox() private readonly outbox: ShopOutbox,
    @InjectOutboxDb() private readonly db: PostgresJsDatabase,
  ) {}

  async place(customer: string, total: number): Promise<Order> {
    return await this.outbox.withOutbox(async (tx, emit) => {
      const [order] = await tx.insert(orders).values({ customer, total }).returning()
      emit('OrderPlaced', { orderId: order!.id, customer })
      // Everything above rolls back, and the event is never published.
      if (total < 0) throw new BadRequestException('an order must not be negative')
      return order!
    })
  }

  /** As code does that begins its transactions itself: on the watched database. */
  async confirm(orderId: number): Promise<void> {
    await this.db.transaction(async (tx) => {
      const [order] = await tx.select().from(orders).where(eq(orders.id, orderId)).for('update')
      // A handler may run twice for one event, so what it does must not add up.
      if (order?.status !== 'placed') return
      await tx.update(orders).set({ status: 'confirmed' }).where(eq(orders.id, orderId))
      this.outbox.emit('OrderConfirmed', { orderId, customer: order.customer })
    })
  }

  async find(orderId: number): Promise<Order> {
    const [order] = await this.db.select().from(orders).where(eq(orders.id, orderId))
    if (!order) throw new NotFoundException()
    return order
  }
}

@Controller('orders')
class OrdersController {
  constructor(@Inject(OrdersService) private readonly service: OrdersService) {}

  @Post()
  place(@Body() { customer, total }: { customer: string; total: number }): Promise<Order> {
    return this.service.place(customer, total)
  }

  @Get(':id')
  find(@Param('id', ParseIntPipe) id: number): Promise<Order> {
    return this.service.find(id)
  }
}

@Module({ controllers: [OrdersController], providers: [OrdersService], exports: [OrdersService] })
export class OrdersModule {}
