import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';

/** A scope in which TypeBox schemas give routes their types. */
export type RouteScope = ReturnType<typeof toRouteScope>;

export function toRouteScope(app: FastifyInstance) {
  return app.withTypeProvider<TypeBoxTypeProvider>();
}
