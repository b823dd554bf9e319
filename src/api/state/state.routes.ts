import { Type } from 'typebox';
import { hasPermission, isOutputsOnly } from '../../shared/access/permissions.ts';
import { importWrite } from '../../shared/jobs/job-list.ts';
import { permissionsInPath } from '../access/stack-access.ts';
import type { StateScans } from '../platform/admission/state-scans.ts';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { component } from '../platform/protocol/components.ts';
import { ContractImportResponse } from '../platform/protocol/contract.ts';
import { StackParams, VersionParams } from '../platform/protocol/core.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import { type StateDownloads, sendState } from './download-slots.ts';
import type { StateService } from './state-service.ts';
import type { SubmitWrite } from './writes/submit-write.ts';
import { UntypedDeployment } from './writes/writes.schemas.ts';

export interface Services {
  readonly downloads: StateDownloads;
  readonly scans: StateScans;
  readonly states: StateService;
  readonly submitWrite: SubmitWrite;
}

const tags = ['state'];
const exporting = {
  rate: 'needed',
  audit: 'stack.export',
  described: { responses: { 200: UntypedDeployment } },
} as const;
const ImportResponse = component('ImportResponse', Type.Object({ updateId: Type.String(), updateID: Type.String() }));
const write = { access: { kind: 'stack', permission: 'write' }, rate: 'held' } as const;

/** Documents are exported and imported byte for byte. */
export function registerStateRoutes(app: RouteScope, services: Services): void {
  exportState(app, services);
  exportVersion(app, services);
  importState(app, services);
}

function exportState(app: RouteScope, { downloads, scans, states }: Services): void {
  app.get(
    `${stackPath}/export`,
    {
      config: { ...exporting, access: { kind: 'stack', permission: 'outputs' } },
      schema: {
        tags,
        summary: 'Export the newest state; with the permission outputs alone, the stack with its outputs',
        security: apiToken,
        params: StackParams,
      },
    },
    async (request, reply) => {
      const { audit, caller, params } = request;
      const { organization } = params;
      const held = permissionsInPath(caller, params);
      if (!isOutputsOnly(held)) {
        const admit = downloads.of({ caller, organization, reply });
        return sendState(request, reply, await states.readHead(params, audit, admit));
      }
      // The outputs require reading the whole state.
      const scan = scans.open({
        ...{ caller, organization },
        signal: clientGone(reply),
        reserveMemory: () => Promise.resolve(),
      });
      const admit = (bytes: number): Promise<void> => {
        scan.end();
        return downloads.admitOutputs({ caller, organization, reply }, bytes);
      };
      const withSecrets = hasPermission(held, 'decrypt');
      const state = await states.readOutputs(scan, params, { admit, audit, withSecrets }).finally(() => scan.end());
      return sendState(request, reply, state);
    },
  );
}

function exportVersion(app: RouteScope, { downloads, states }: Services): void {
  app.get(
    `${stackPath}/export/:stackVersion`,
    {
      config: { ...exporting, access: { kind: 'stack', permission: 'read' }, rate: 'repeated' },
      schema: { tags, summary: 'Export the state of a version', security: apiToken, params: VersionParams },
    },
    async (request, reply) => {
      const { audit, caller, params } = request;
      const admit = downloads.of({ caller, organization: params.organization, reply });
      return sendState(request, reply, await states.readVersion(params, params.stackVersion, audit, admit));
    },
  );
}

function importState(app: RouteScope, { states, submitWrite }: Services): void {
  app.post(
    `${stackPath}/import`,
    {
      config: {
        ...write,
        audit: 'stack.import',
        body: 'payload',
        described: { body: UntypedDeployment, errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Import a deployment as a new version',
        security: apiToken,
        params: StackParams,
        response: { 200: Type.Union([ImportResponse, ContractImportResponse]) },
      },
    },
    async (request) => {
      // Called before the body is read, which may take long: changes committed in the meantime are newer than the import.
      const target = await states.beginImport(request.params, request.caller, request.audit);
      await submitWrite(request, importWrite, target);
      request.audit.settle();
      const { updateId } = target;
      // The CLI reads `updateId`, the contract specifies `updateID`.
      return request.dialect === 'contract' ? { updateID: updateId } : { updateId, updateID: updateId };
    },
  );
}
