import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { auditFormats } from '../../shared/audit/audit-formats.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { isCliCommand } from '../platform/http/cli-command.ts';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import { auditLogEvent } from './audit.mappers.ts';
import {
  AuditExportQuery,
  AuditExportQueryV2,
  AuditLogsQuery,
  AuditLogsQueryV2,
  AuditLogsResponse,
  OrganizationParams,
} from './audit.schemas.ts';
import type { AuditQuery, AuditService } from './audit-service.ts';

export interface Services {
  readonly audit: AuditService;
}

const tags = ['audit'];
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'repeated' } as const;
const path = '/api/orgs/:organization/auditlogs';

interface Export {
  readonly audit: AuditTrail;
  readonly organization: string;
  readonly format: string | undefined;
}

interface ListCall {
  readonly end: keyof typeof endFlags;
  readonly isGeneric: boolean;
  readonly reply: FastifyReply;
}

const endFlags = { startTime: '--start-time', endTime: '--end-time' } as const;
const contentTypes = { csv: 'text/csv; charset=utf-8', cef: 'text/plain; charset=utf-8', jsonl: 'application/jsonl' };

const base = { tags, security: apiToken, params: OrganizationParams };
const listed = {
  config: manage,
  schema: {
    ...base,
    summary: 'List the events of the audit log, newest first',
    response: { 200: AuditLogsResponse },
  },
};
const exported = {
  config: {
    ...manage,
    audit: 'audit.export',
    described: { responses: { 200: Type.String() }, produces: Object.values(contentTypes) },
  },
  schema: { ...base, summary: 'Export the events of the audit log as CSV, CEF or JSON lines, newest first' },
} as const;

export function registerAuditRoutes(app: RouteScope, { audit: events }: Services): void {
  /** `end`: the parameter with the end of the range. `isGeneric`: for `pulumi api`. */
  const list = async (
    organization: string,
    query: AuditQuery,
    { end, isGeneric, reply }: ListCall,
  ): Promise<AuditLogsResponse> => {
    const page = await events.listPage(organization, query, clientGone(reply));
    if (page.cutAt !== null) {
      const at = page.cutAt.toISOString();
      const found = page.events.length === 0 ? `No event since ${at} matches` : `There may be more events before ${at}`;
      const problem = `${found}: the whole search takes too long for one call`;
      // The `--all` of `pulumi api` ends at an empty page, as if nothing followed, and prints no warning.
      if (isGeneric && page.events.length === 0)
        throw new InvalidRequestError(`${problem}; continue with ${end}=${at}`);
      const hint = `Use --all, or continue with ${endFlags[end]} ${at}`;
      void reply.header(warningHeader, asHeader(`${problem}. ${hint}`));
    }
    // The CLI requests the next page as long as there is a token.
    const token = page.next === null ? {} : { continuationToken: page.next };
    return { auditLogEvents: page.events.map(auditLogEvent), ...token };
  };
  const send = async (reply: FastifyReply, query: AuditQuery, { audit, organization, format: name }: Export) => {
    const format = auditFormats.find((each) => each === (name || 'csv'));
    if (!format) throw new InvalidRequestError(`format must be ${auditFormats.join(', ')}`);
    const lines = await events.exportLines(organization, query, format, audit);
    return sendChunks(reply, lines, { contentType: contentTypes[format] });
  };

  app.get(
    path,
    { ...listed, schema: { ...listed.schema, querystring: AuditLogsQuery } },
    ({ headers, params: { organization }, query }, reply) =>
      list(organization, filtersOf(query), { end: 'startTime', isGeneric: isCliCommand('api', headers), reply }),
  );
  // CLI 3.276 calls v2.
  app.get(
    `${path}/v2`,
    { ...listed, schema: { ...listed.schema, querystring: AuditLogsQueryV2 } },
    ({ headers, params: { organization }, query }, reply) =>
      list(organization, filtersOfV2(query), { end: 'endTime', isGeneric: isCliCommand('api', headers), reply }),
  );
  app.get(
    `${path}/export`,
    { ...exported, schema: { ...exported.schema, querystring: AuditExportQuery } },
    ({ params: { organization }, query: { format, ...query }, audit }, reply) =>
      send(reply, filtersOf(query), { audit, organization, format }),
  );
  app.get(
    `${path}/v2/export`,
    { ...exported, schema: { ...exported.schema, querystring: AuditExportQueryV2 } },
    ({ params: { organization }, query: { format, ...query }, audit }, reply) =>
      send(reply, filtersOfV2(query), { audit, organization, format }),
  );
}

/** The first version of the call has no start of the range. */
function filtersOf({ startTime, ...query }: AuditLogsQuery): AuditQuery {
  return { ...query, ...(startTime ? { until: startTime } : {}) };
}

function filtersOfV2({ endTime, eventFilter, startTime, userFilter, ...query }: AuditLogsQueryV2): AuditQuery {
  return {
    ...query,
    ...(eventFilter ? { eventType: eventFilter } : {}),
    ...(userFilter ? { user: userFilter } : {}),
    ...(startTime ? { from: startTime } : {}),
    ...(endTime ? { until: endTime } : {}),
  };
}
