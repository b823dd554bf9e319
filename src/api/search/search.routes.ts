import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import { OrganizationParams } from '../audit/audit.schemas.ts';
import { isCliCommand } from '../platform/http/cli-command.ts';
import { apiToken } from '../platform/http/paths.ts';
import type { Caller } from '../platform/http/request.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import type { FoundItem } from './found-item.ts';
import { ResourceSearchQuery, ResourceSearchResponse, ResourceSearchV2Response } from './search.schemas.ts';
import { decodeCountedCursor, encodeCountedCursor, type SearchTotal } from './search-cursor.ts';
import type { FromIndex, SearchPage, SearchService } from './search-service.ts';

export interface Services {
  readonly search: SearchService;
}

const path = '/api/orgs/:organization/search/resources';
const config = {
  access: { kind: 'organization', permission: 'read' },
  rate: 'held',
  // 431: queries and cursors may be too long.
  described: { errorStatuses: [431] },
} as const;
const common = {
  tags: ['search'],
  summary: 'Search the resources of all stacks of an organization that the caller may read',
  description: 'Sorted by stack, type and name. The index is a few seconds behind updates; `behind` has the lag.',
  security: apiToken,
  params: OrganizationParams,
  querystring: ResourceSearchQuery,
};
const defaultSize = 25;
const maxSize = 200;
/** The CLI prints a warning if the index lags by more than this. */
const warnedLagSeconds = 60;

/** `pulumi org search` and `pulumi insights resource search` call these routes. */
export function registerSearchRoutes(app: RouteScope, services: Services): void {
  app.get(
    path,
    { config, schema: { ...common, response: { 200: ResourceSearchResponse } } },
    async (request, reply) => {
      const { items, ...envelope } = await search(services, request, reply, 'resources');
      return {
        ...envelope,
        resources: items.map((item) => ({
          ...resourceView(item),
          // `pulumi org search` prints the value without checking that it exists (cmd/pulumi/org/org_search.go).
          modified: item.changedAt ?? '',
          'parent.urn': item.parent,
          'provider.urn': item.providerUrn,
        })),
      };
    },
  );
  app.get(
    `${path}v2`,
    { config, schema: { ...common, response: { 200: ResourceSearchV2Response } } },
    async (request, reply) => {
      const { items, ...envelope } = await search(services, request, reply, 'resourcesv2');
      return {
        ...envelope,
        resources: items.map((item) => ({
          ...resourceView(item),
          external: item.isExternal,
          ...(item.parent === null ? {} : { parent_urn: item.parent }),
          ...(item.providerUrn === null ? {} : { provider_urn: item.providerUrn }),
        })),
      };
    },
  );
}

async function search(
  { search: searches }: Services,
  {
    caller,
    headers,
    params: { organization },
    query: { cursor = '', page = 1, query: text = '', size = defaultSize, ...unsupported },
  }: {
    readonly caller: Caller;
    readonly headers: { readonly 'user-agent'?: string | undefined };
    readonly params: Static<typeof OrganizationParams>;
    readonly query: Static<typeof ResourceSearchQuery>;
  },
  reply: FastifyReply,
  collection: 'resources' | 'resourcesv2',
) {
  assertSupported(unsupported);
  if (page > 1 && cursor === '')
    throw new InvalidRequestError('Pages after the first have a cursor: follow pagination.next');
  const limit = Math.min(size, maxSize);
  const from = decodeCountedCursor(cursor === '' ? null : cursor);
  const gone = clientGone(reply);
  const found = await searches.list(caller, { text, organization, after: from?.after ?? null, limit }, gone);
  const count = async (): Promise<SearchTotal> => {
    const atLeast = found.items.length;
    if (found.next === null) return { total: atLeast, isCut: false };
    const { isCut, resources } = await searches.count(caller, { text, organization, by: 'type' }, gone);
    return { total: Math.max(resources, atLeast), isCut };
  };
  const counted = from?.counted ?? (await count());
  const { total } = counted;
  const warnings = warningsOf(found, counted.isCut ? total : undefined);
  if (warnings.length > 0) void reply.header(warningHeader, asHeader(warnings.join('. ')));
  const pageOf = (at: string) => new URLSearchParams({ query: text, size: String(size), cursor: at });
  const cursorTo = found.next && encodeCountedCursor(found.next, counted);
  // The `--all` of `pulumi api` ends at an empty page, as if nothing followed, and prints no warning.
  if (cursorTo && found.items.length === 0 && isCliCommand('api', headers))
    throw new InvalidRequestError(`The search took too long: continue with cursor=${cursorTo}`);
  const next = cursorTo && `/api/orgs/${organization}/search/${collection}?${pageOf(cursorTo)}`;
  return {
    items: found.items,
    total,
    pagination: { ...(next === null ? {} : { next }), ...(cursor === '' ? {} : { cursor }) },
    cutShort: found.isCut,
    trimmed: found.isTrimmed,
    behind: found.behind,
  };
}

/** Refuses options of the CLI that would be ignored. There is nothing to `collapse`. */
function assertSupported({
  properties,
  sort = [],
}: Pick<Static<typeof ResourceSearchQuery>, 'properties' | 'sort'>): void {
  if (sort.length > 0)
    throw new InvalidRequestError('Results are sorted by stack, type and name: other orders are not supported');
  if (properties) throw new InvalidRequestError('The index has no values of properties: omit properties');
}

/** The CLI does not know the corresponding members of the response. `atLeast`: a total that is too low. */
function warningsOf({ behind, isCut }: SearchPage & FromIndex, atLeast: number | undefined): readonly string[] {
  const warnings: string[] = [];
  if (isCut)
    warnings.push(
      'The search took too long: there may be more resources. Add a type, a name or a project to it, or follow pagination.next',
    );
  if (atLeast !== undefined)
    warnings.push(`There are at least ${atLeast} resources in total: counting them all took too long`);
  if (behind !== null && behind.oldestSeconds >= warnedLagSeconds)
    warnings.push(
      `The index is ${behind.oldestSeconds} s behind: it lacks the newest state of ${behind.stacks} stack(s)`,
    );
  return warnings;
}

function resourceView({ changedAt, isCustom, isDeleted, name, project, protect, stack, type, urn }: FoundItem) {
  const [pack = '', module = ''] = type.split(':');
  return {
    ...{
      name,
      type,
      urn,
      project,
      stack,
      package: pack,
      module,
      custom: isCustom,
      delete: isDeleted,
      protected: protect,
    },
    ...(changedAt === null ? {} : { modified: changedAt }),
  };
}
