import { Type } from 'typebox';
import { auditFormats } from '../../shared/audit/audit-formats.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { auditLogEvent } from './audit.mappers.ts';
import { AuditExportQuery, AuditLogsQuery, AuditLogsResponse, OrganizationParams } from './audit.schemas.ts';
import type { AuditService } from './audit-service.ts';

/** What the routes call. */
export interface Services {
  readonly audit: AuditService;
}

const tags = ['audit'];
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'repeated' } as const;
const path = '/api/orgs/:organization/auditlogs';
const contentTypes = { csv: 'text/csv; charset=utf-8', cef: 'text/plain; charset=utf-8', jsonl: 'application/jsonl' };

/** The audit log of an organization, for its admins. */
export function registerAuditRoutes(app: RouteScope, { audit: events }: Services): void {
  app.get(
    path,
    {
      config: manage,
      schema: {
        tags,
        summary: 'List the events of the audit log, newest first',
        security: apiToken,
        params: OrganizationParams,
        querystring: AuditLogsQuery,
        response: { 200: AuditLogsResponse },
      },
    },
    async ({ params, query }) => {
      const page = await events.listPage(params.organization, query);
      // The CLI requests the next page as long as there is a token.
      const token = page.next === null ? {} : { continuationToken: page.next };
      return { auditLogEvents: page.events.map(auditLogEvent), ...token };
    },
  );
  app.get(
    `${path}/export`,
    {
      config: {
        ...manage,
        audit: 'audit.export',
        described: { responses: { 200: Type.String() }, produces: Object.values(contentTypes) },
      },
      schema: {
        tags,
        summary: 'Export the events of the audit log as CSV, CEF or JSON lines, newest first',
        security: apiToken,
        params: OrganizationParams,
        querystring: AuditExportQuery,
      },
    },
    async ({ params, query, audit }, reply) => {
      const name = query.format || 'csv';
      const format = auditFormats.find((each) => each === name);
      if (!format) throw new InvalidRequestError(`format must be ${auditFormats.join(', ')}`);
      const lines = await events.exportLines(params.organization, query, format, audit);
      return sendChunks(reply, lines, { contentType: contentTypes[format] });
    },
  );
}
