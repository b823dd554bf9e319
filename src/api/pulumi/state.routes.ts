import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { StateDocument } from '../../shared/checkpoints/state-reader.ts';
import { asHeader, warningHeader } from '../../shared/journal/journal-fault.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { ContractImportResponse } from '../../shared/protocol/contract.ts';
import { StackParams, VersionParams } from '../../shared/protocol/core.ts';
import { UntypedDeployment } from '../../shared/protocol/payloads.ts';
import { ImportResponse } from '../../shared/protocol/stacks.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { ApiContext } from '../api-context.ts';
import { commitPayload } from '../checkpoints/payload.ts';
import type { RouteScope } from '../route-scope.ts';
import { UpdateService } from '../updates/update-service.ts';
import { importAnswer } from './answers.ts';
import { apiToken, stackPath } from './paths.ts';

const tags = ['state'];
const viewer = { access: { kind: 'organization', role: 'viewer' } } as const;
const exporting = { ...viewer, described: { answers: { 200: UntypedDeployment } } } as const;
const member = { access: { kind: 'organization', role: 'member' } } as const;

/** Export and import of deployment documents, byte for byte. */
export function registerStateRoutes(app: RouteScope, context: ApiContext): void {
  const updates = new UpdateService(context);
  const { changes, importer } = context;

  app.get(
    `${stackPath}/export`,
    {
      config: exporting,
      schema: { tags, summary: 'Export the newest state', security: apiToken, params: StackParams },
    },
    async ({ params }, reply) => {
      const head = await context.states.readHead(params);
      if (!head) throw stackNotFound(params);
      return sendState(reply, head.state);
    },
  );

  app.get(
    `${stackPath}/export/:stackVersion`,
    {
      config: exporting,
      schema: { tags, summary: 'Export the state of a version', security: apiToken, params: VersionParams },
    },
    async ({ params }, reply) => {
      const stack = await context.stacks.find(params);
      if (!stack) throw stackNotFound(params);
      const version = /^[1-9]\d{0,8}$/.test(params.stackVersion) ? Number(params.stackVersion) : 0;
      const state = version > 0 ? await context.states.readVersion(stack.id, version) : null;
      if (!state)
        throw new NotFoundError(`The stack has no version ${JSON.stringify(params.stackVersion.slice(0, 20))}`);
      return sendState(reply, state);
    },
  );

  app.post(
    `${stackPath}/import`,
    {
      config: { ...member, body: 'payload', described: { body: UntypedDeployment, refusals: [409] } },
      schema: {
        tags,
        summary: 'Import a deployment as a new version',
        security: apiToken,
        params: StackParams,
        response: { 200: Type.Union([ImportResponse, ContractImportResponse]) },
      },
    },
    async (request) => {
      const { caller, params } = request;
      const stack = await context.stacks.find(params);
      if (!stack) throw stackNotFound(params);
      await context.quotas.assertMayKeepMore(params.organization);
      // Before the body, which may be long on its way: what is committed meanwhile is newer.
      await updates.settle(stack.id);
      const head = await changes.findHead(stack.id);
      const target = { stackId: stack.id, updateId: randomUUID(), requestedBy: caller.userId };
      await commitPayload(context, request, {
        kind: 'import',
        direct: async ({ opened }) =>
          importer.import({ ...target, admission: await changes.admit(head), ...(await opened()) }),
        job: async (handover) => ({
          name: 'import-deployment',
          schema: 2,
          ...target,
          admission: await changes.admit(head),
          ...handover,
        }),
        waitForRoom: true,
        onlyWhileAwaited: true,
        settle: (error) => changes.settle(target.updateId, error),
      });
      return importAnswer(request.dialect, target.updateId);
    },
  );
}

function sendState(reply: FastifyReply, state: StateDocument): FastifyReply {
  if (state.warning !== null) void reply.header(warningHeader, asHeader(state.warning));
  // So that an answer which breaks off cannot pass for a whole one: proxies end a chunked one as if nothing were missing.
  // Taken away again when the answer is compressed; gzip has an end of its own.
  void reply.header('content-length', state.sizeBytes);
  return reply.type('application/json; charset=utf-8').send(Readable.from(state.bytes, { objectMode: false }));
}
