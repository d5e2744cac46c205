// Orders of a shop.
import { inTransaction } from './database.ts'
import { publish } from './messaging.ts'

export async function placeOrder(customer: string, total: number): Promise<number> {
  const id = await inTransaction(async (tx) => {
    const { rows } = await tx.query<{ id: number }>(
      'insert into orders (customer, total) values ($1, $2) returning id',
      [customer, total],
    )
    const order = rows[0]!
    await tx.query('update customers set spent = spent + $2 where name = $1', [customer, total])
    return order.id
  })
  // If the process dies here, or Kafka is away, the order exists and its consumers never hear of it.
  await publish({ type: 'OrderPlaced', orderId: id, customer, total })
  return id
}

export async function cancelOrder(id: number): Promise<void> {
  await inTransaction(async (tx) => {
    await tx.query("update orders set status = 'cancelled' where id = $1", [id])
    // If COMMIT fails after this, consumers hear of a cancellation that never was.
    await publish({ type: 'OrderCancelled', orderId: id })
  })
}
