import type { FastifyRequest } from 'fastify';
import type { AuditAction } from '../../../shared/audit/audit-actions.ts';

/** The action in the audit log that the route of a request declares; null: it declares none. */
export function actionOf({ routeOptions }: Pick<FastifyRequest, 'routeOptions'>): AuditAction | null {
  const { audit } = routeOptions.config;
  return typeof audit === 'string' ? audit : null;
}
