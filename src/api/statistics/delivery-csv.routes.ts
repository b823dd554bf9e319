import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { csvLine } from '../../shared/platform/csv/csv-line.ts';
import { nowhere, type ProcedureServices, RequestCalls } from '../access/procedures/context.ts';
import { Name, readQuery } from '../access/procedures/inputs.ts';
import type { Refusals } from '../platform/audit-trail/refusals.ts';
import type { Caller } from '../platform/http/request.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import type { DeliveryQueries } from './delivery-queries.ts';

const access = { kind: 'organization', permission: 'read' } as const;
const Query = Type.Object({
  organization: Name,
  days: Type.Union([Type.Literal('7'), Type.Literal('30'), Type.Literal('90')]),
});

type Project = Awaited<ReturnType<DeliveryQueries['sum']>>['projects'][number];

const columns: readonly (readonly [string, (project: Project) => string | number | null | undefined])[] = [
  ['project', ({ project }) => project],
  ['finished runs', ({ finished }) => finished],
  ['failed runs', ({ failed }) => failed],
  ['failure rate', ({ failureRate }) => failureRate],
  ['changes', ({ changed }) => changed],
  ['changes per day', ({ changesPerDay }) => changesPerDay],
  ['lead times', ({ leadTime }) => leadTime?.count ?? 0],
  ['median lead time in seconds', ({ leadTime }) => leadTime?.medianSeconds],
  ['90th percentile of lead time in seconds', ({ leadTime }) => leadTime?.p90Seconds],
  ['times to restore', ({ timeToRestore }) => timeToRestore?.count ?? 0],
  ['median time to restore in seconds', ({ timeToRestore }) => timeToRestore?.medianSeconds],
  ['90th percentile of time to restore in seconds', ({ timeToRestore }) => timeToRestore?.p90Seconds],
];

export function registerDeliveryCsv(scope: FastifyInstance, services: ProcedureServices, refusals: Refusals): void {
  scope.get(
    '/trpc/download/delivery.csv',
    { config: { access: { kind: 'procedures' }, rate: 'held' }, exposeHeadRoute: false, schema: { hide: true } },
    async (request, reply) => {
      const { days, organization } = readQuery(Query, request.query);
      const calls = new RequestCalls(services, request, request.holder, refusals);
      const caller = await calls.admit(access, { ...nowhere, organization });
      void reply.header('content-disposition', 'attachment; filename="delivery.csv"');
      return sendChunks(reply, lines(services, caller, organization, Number(days)), {
        contentType: 'text/csv; charset=utf-8; header=present',
      });
    },
  );
}

async function* lines(
  { deliveryQueries }: ProcedureServices,
  caller: Caller,
  organization: string,
  days: number,
): AsyncGenerator<string> {
  const { projects } = await deliveryQueries.sum(caller, organization, days);
  yield csvLine(columns.map(([name]) => name));
  for (const project of projects) yield csvLine(columns.map(([, read]) => String(read(project) ?? '')));
}
