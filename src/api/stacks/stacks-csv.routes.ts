import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { csvLine } from '../../shared/platform/csv/csv-line.ts';
import { type Holder, nowhere, type ProcedureServices, RequestCalls } from '../access/procedures/context.ts';
import { Name, readQuery, text } from '../access/procedures/inputs.ts';
import type { Refusals } from '../platform/audit-trail/refusals.ts';
import type { Caller } from '../platform/http/request.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { exportStacks } from './stack-export.ts';
import { StatusFilter } from './stack-filter.ts';
import type { StackCard } from './stack-queries.ts';

const Query = Type.Object({
  organization: Type.Optional(Name),
  text: Type.Optional(text(200)),
  project: Type.Optional(Name),
  /** `name` or `name=value`. */
  tag: Type.Optional(text(400)),
  status: Type.Optional(StatusFilter),
});
type Query = Static<typeof Query>;

const columns: readonly (readonly [string, (stack: StackCard) => string | number | null | undefined])[] = [
  ['organization', ({ organization }) => organization],
  ['project', ({ project }) => project],
  ['stack', ({ stack }) => stack],
  ['version', ({ version }) => version],
  ['resources', ({ resourceCount }) => resourceCount],
  ['last update', ({ lastUpdate }) => lastUpdate?.kind],
  ['result', ({ lastUpdate }) => lastUpdate?.result],
  ['ended', ({ lastUpdate }) => lastUpdate?.endedAt],
  ['by', ({ lastUpdate }) => lastUpdate?.by],
  ['commit', ({ lastUpdate }) => lastUpdate?.commit],
  ['ci run', ({ lastUpdate }) => lastUpdate?.ciUrl],
  ['lock held by', ({ active }) => active?.by],
  ['lock since', ({ active }) => active?.since],
  ['waiting', ({ waiting }) => waiting],
  ['drift', ({ drift }) => drift],
  ['changed', ({ updatedAt }) => updatedAt],
  [
    'tags',
    ({ tags }) =>
      Object.entries(tags)
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
  ],
];

/** The list of stacks as a file has its own path, because procedures respond with JSON. */
export function registerStacksCsv(scope: FastifyInstance, services: ProcedureServices, refusals: Refusals): void {
  scope.get(
    '/trpc/download/stacks.csv',
    { config: { access: { kind: 'procedures' }, rate: 'held' }, exposeHeadRoute: false, schema: { hide: true } },
    async (request, reply) => {
      const query = readQuery(Query, request.query);
      const calls = new RequestCalls(services, request, request.holder, refusals);
      const caller = await calls.admit({ kind: 'user' }, nowhere);
      void reply.header('content-disposition', 'attachment; filename="stacks.csv"');
      return sendChunks(reply, lines(services, { caller, holder: request.holder }, query), {
        contentType: 'text/csv; charset=utf-8; header=present',
      });
    },
  );
}

/** Yields no faster than the client reads, and only while the token or session is valid. */
async function* lines(
  { stackQueries }: ProcedureServices,
  { caller, holder }: { readonly caller: Caller; readonly holder: Holder },
  query: Query,
): AsyncGenerator<string> {
  const { organization = null, project = null, status = null, tag, text: words = null } = query;
  const at = tag?.indexOf('=') ?? -1;
  const pages = exportStacks(stackQueries, caller, {
    ...{ organization, project, status, text: words },
    tag: tag ? { name: at < 0 ? tag : tag.slice(0, at), value: at < 0 ? null : tag.slice(at + 1) } : null,
  });
  let next = await pages.next();
  yield csvLine(columns.map(([name]) => name));
  for (; !next.done; next = await pages.next()) {
    yield next.value.map((stack) => csvLine(columns.map(([, read]) => String(read(stack) ?? '')))).join('');
    await holder.confirm();
  }
}
