import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import type { Config } from '../../shared/platform/config/config.ts';
import { proofPath } from '../../shared/platform/site/installation-proof.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';
import type { ProcessHealth } from '../../shared/platform/telemetry/status-server.ts';
import type { ProofStream } from './server/proof-stream.ts';

export interface Services {
  readonly config: Config;
  readonly health: ProcessHealth;
  readonly metrics: Metrics;
  readonly proof: ProofStream;
}

const Status = Type.Object({ status: Type.String() }, { additionalProperties: true });
const described = { responses: { 200: Status, 503: Status } };
const tags = ['health'];
const Event = Type.Object({ data: Type.String() });
const Nonce = Type.Object({ nonce: Type.String({ pattern: '^[0-9a-f]{32}$' }) });

/**
 * Probes, outside the protocol: they need no Accept version and no token. They return only what a proxy needs. Details and metrics are on
 * the management listener, and here only if none is configured.
 */
export function registerHealthRoutes(app: FastifyInstance, { config, health, metrics, proof }: Services): void {
  const isManagement = config.managementListen === null;
  const summaries = {
    healthz: 'Check the health of the server and its database',
    readyz: 'Check whether the server can accept requests',
  };
  for (const probe of ['healthz', 'readyz'] as const) {
    app.get(
      `/${probe}`,
      { logLevel: 'warn', config: { described, rate: 'never' }, schema: { summary: summaries[probe], tags } },
      async (_request, reply) => {
        const { status, body } = await health[probe]();
        return reply.code(status).send(isManagement ? body : { status: body.status });
      },
    );
  }
  app.get<{ Querystring: Type.Static<typeof Nonce> }>(
    proofPath,
    {
      config: {
        rate: 'repeated',
        described: { responses: { 200: Event }, produces: ['text/event-stream'], errorStatuses: [400] },
      },
      schema: { summary: 'Prove which installation answers, in a stream of two events', tags, querystring: Nonce },
    },
    async ({ query }, reply) => {
      const events = proof.events(query.nonce);
      const first = await events.next();
      const all = async function* (): AsyncGenerator<string> {
        yield first.value as string;
        yield* events;
      };
      return reply.type('text/event-stream').send(Readable.from(all(), { highWaterMark: 1 }));
    },
  );
  if (!isManagement) return;
  app.get(
    '/metrics',
    {
      logLevel: 'warn',
      config: { rate: 'never', described: { responses: { 200: Type.String() }, produces: ['text/plain'] } },
      schema: { summary: 'Get Prometheus metrics', tags },
    },
    async (_request, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  );
}
