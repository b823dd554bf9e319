import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { type ProcedureServices, RequestCalls } from '../access/procedures/context.ts';
import { Name } from '../access/procedures/inputs.ts';
import type { Refusals } from '../platform/audit-trail/refusals.ts';
import { type StateDownloads, sendState } from './download-slots.ts';
import type { StateService } from './state-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly downloads: StateDownloads;
    readonly states: StateService;
  }
}

const access = { kind: 'stack', permission: 'read' } as const;
const Params = Type.Object({ organization: Name, project: Name, stack: Name, stackVersion: Name });

/** The browser of a signed-in user gets the same bytes as `export` sends to the CLI, including ciphertexts. */
export function registerStateDownload(scope: FastifyInstance, services: ProcedureServices, refusals: Refusals): void {
  scope.get<{ Params: { organization: string; project: string; stack: string; stackVersion: string } }>(
    '/trpc/states/:organization/:project/:stack/:stackVersion',
    {
      config: { access: { kind: 'procedures' }, rate: 'held', audit: { none: 'it records its reads itself' } },
      exposeHeadRoute: false,
      schema: { hide: true, params: Params },
    },
    async (request, reply) => {
      const { stackVersion, ...ref } = request.params;
      const calls = new RequestCalls(services, request, request.holder, refusals);
      const caller = await calls.admit(access, ref);
      const admit = services.downloads.of({ caller, organization: ref.organization, reply });
      const audit = calls.trail(caller, access, 'stack.export');
      const state = await services.states.readVersion(ref, stackVersion, audit, admit);
      const name = `${ref.project}-${ref.stack}-${stackVersion}.json`.replace(/[^\w.-]/g, '_');
      void reply.header('content-disposition', `attachment; filename="${name}"`);
      return sendState(request, reply, state);
    },
  );
}
