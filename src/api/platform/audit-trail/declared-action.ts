import type { FastifyRequest } from 'fastify';
import type { AuditAction } from '../../../shared/audit/audit-actions.ts';

export function actionOf({ routeOptions }: Pick<FastifyRequest, 'routeOptions'>): AuditAction | null {
  const { audit } = routeOptions.config;
  return typeof audit === 'string' ? audit : null;
}
