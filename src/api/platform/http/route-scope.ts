import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';

/** Types come from TypeBox schemas. */
export type RouteScope = ReturnType<typeof toRouteScope>;

export function toRouteScope(app: FastifyInstance) {
  return app.withTypeProvider<TypeBoxTypeProvider>();
}
