import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';

/** A Fastify scope whose routes get their types from TypeBox schemas. */
export type RouteScope = ReturnType<typeof toRouteScope>;

export function toRouteScope(app: FastifyInstance) {
  return app.withTypeProvider<TypeBoxTypeProvider>();
}
