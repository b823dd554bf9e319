import { Type } from 'typebox';
import { isOutputsOnly } from '../../shared/access/permissions.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { parseTags } from '../../shared/stacks/tags.ts';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import { permissionsInPath } from '../access/stack-access.ts';
import { assertAwaited } from '../platform/http/awaited.ts';
import { isCliCommand } from '../platform/http/cli-command.ts';
import { apiToken, projectPath, stackPath } from '../platform/http/paths.ts';
import { type BodyParts, receiveBody } from '../platform/http/request-body.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import {
  ContractCreateStackResponse,
  ContractRenameStackRequest,
  ContractStackResponse,
} from '../platform/protocol/contract.ts';
import { ProjectParams, StackParams } from '../platform/protocol/core.ts';
import { RequiredPoliciesResponse } from '../policies/policies.schemas.ts';
import type { PolicyPackService } from '../policies/policy-pack-service.ts';
import { readCreateRequest } from './create-request.ts';
import { renameTarget, type StackRenaming } from './stack-renaming.ts';
import type { StackService } from './stack-service.ts';
import { nameOnly } from './stack-view.ts';
import {
  createStackResponse,
  listedStackResponse,
  stackListJson,
  stackResponse,
  warnOfFaults,
} from './stacks.mappers.ts';
import {
  CreateStackRequest,
  CreateStackResponse,
  DeleteStackQuery,
  ListStacksQuery,
  ListStacksResponse,
  RenameStackRequest,
  StackResponse,
} from './stacks.schemas.ts';

export interface Services extends BodyParts {
  readonly policyPacks: PolicyPackService;
  readonly renaming: StackRenaming;
  readonly stacks: StackService;
}

const tags = ['stacks'];
const read = { access: { kind: 'stack', permission: 'read' }, rate: 'needed' } as const;
const write = { access: { kind: 'stack', permission: 'write' }, rate: 'held' } as const;
const admin = { access: { kind: 'stack', permission: 'admin' }, rate: 'held' } as const;

export function registerStackRoutes(app: RouteScope, services: Services): void {
  createStack(app, services);
  findProject(app, services);
  listStacks(app, services);
  getStack(app, services);
  deleteStack(app, services);
  renameStack(app, services);
  listRequiredPolicies(app, services);
}

function createStack(app: RouteScope, services: Services): void {
  const { stacks } = services;
  app.post(
    projectPath,
    {
      // The service checks permissions: the organization may not exist yet.
      config: {
        access: { kind: 'user' },
        rate: 'held',
        audit: 'stack.create',
        body: 'payload',
        described: { body: CreateStackRequest, errorStatuses: [403, 409] },
      },
      schema: {
        tags,
        summary: 'Create a stack',
        security: apiToken,
        params: ProjectParams,
        response: { 200: Type.Union([CreateStackResponse, ContractCreateStackResponse]) },
      },
    },
    async (raw) => {
      const { params, caller, dialect, audit } = raw;
      const { body, release } = await receiveBody(services, raw, services.config.limits.maxControlBodyBytes);
      const stack = await (async () => {
        const { request, state } = await readCreateRequest(body);
        const ref = { ...params, stack: request.stackName };
        const tags = parseTags(request.tags ?? {});
        return stacks.create(caller, { ref, tags, teams: request.teams ?? [], state }, audit);
      })().finally(release);
      return createStackResponse(dialect, stack);
    },
  );
}

function findProject(app: RouteScope, { stacks }: Services): void {
  app.head(
    projectPath,
    {
      config: {
        access: { kind: 'organization', permission: 'read' },
        rate: 'held',
        swagger: { exposeHeadRoute: true },
      },
      schema: { tags, summary: 'Check whether the project exists', security: apiToken, params: ProjectParams },
    },
    async ({ caller, dialect, params }, reply) => {
      if (!(await stacks.projectExists(caller, params.organization, params.project, dialect)))
        throw new NotFoundError('Project not found');
      return reply.code(200).send();
    },
  );
}

function listStacks(app: RouteScope, { stacks }: Services): void {
  app.get(
    '/api/user/stacks',
    {
      config: { access: { kind: 'user' }, rate: 'repeated', described: { responses: { 200: ListStacksResponse } } },
      schema: { tags, summary: 'List stacks', security: apiToken, querystring: ListStacksQuery },
    },
    async ({ caller, dialect, query }, reply) => {
      // Sent by `pulumi stack ls --tag =VALUE`. The caller would otherwise get all stacks, and might act on them.
      if (query.tagValue && !query.tagName)
        throw new InvalidRequestError('tagValue needs tagName: this server searches tags by name (NAME or NAME=VALUE)');
      const chunks = stacks.list(caller, {
        organization: query.organization || null,
        project: query.project || null,
        tagName: query.tagName || null,
        tagValue: query.tagName ? (query.tagValue ?? null) : null,
        unstarted: dialect === 'contract',
        continuationToken: query.continuationToken || null,
      });
      return sendChunks(
        reply,
        stackListJson(chunks, (stack) => listedStackResponse(dialect, stack)),
      );
    },
  );
}

function getStack(app: RouteScope, { stacks }: Services): void {
  app.get(
    stackPath,
    {
      config: { access: { kind: 'stack', permission: 'outputs' }, rate: 'needed' },
      schema: {
        tags,
        summary: 'Get a stack; with the permission outputs alone, nothing but its name',
        security: apiToken,
        params: StackParams,
        response: { 200: Type.Union([StackResponse, ContractStackResponse]) },
      },
    },
    async ({ caller, headers, params, dialect }, reply) => {
      if (isOutputsOnly(permissionsInPath(caller, params)))
        return stackResponse(dialect, nameOnly(await stacks.get(params)));
      const view = await stacks.view(params);
      if (view.stack.activeUpdateId === null && isCliCommand('cancel', headers)) throw nothingToCancel(params);
      warnOfFaults(reply, view);
      return stackResponse(dialect, view);
    },
  );
}

function deleteStack(app: RouteScope, { stacks }: Services): void {
  app.delete(
    stackPath,
    {
      config: { ...admin, audit: 'stack.delete', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Delete a stack',
        security: apiToken,
        params: StackParams,
        querystring: DeleteStackQuery,
        response: { 204: Type.Null() },
      },
    },
    async ({ caller, params, query, dialect, audit }, reply) => {
      // The CLI always sends `force`. The contract has no such parameter: its clients' deletions are unconditional.
      const flag = query.force ?? query.forceDestroy;
      const force = flag === undefined ? dialect === 'contract' : flag.toLowerCase() === 'true';
      const warning = await stacks.delete(caller, params, { keepResources: !force }, audit);
      if (warning !== null) void reply.header(warningHeader, asHeader(warning));
      return reply.code(204).send(null);
    },
  );
}

function renameStack(app: RouteScope, { renaming }: Services): void {
  app.post(
    `${stackPath}/rename`,
    {
      config: {
        ...write,
        audit: 'stack.rename',
        contractBody: ContractRenameStackRequest,
        described: { errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Rename a stack',
        security: apiToken,
        params: StackParams,
        body: RenameStackRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body, caller, dialect, raw, audit }, reply) => {
      const target = renameTarget(params, body, dialect);
      await renaming.rename(params, target, { caller, audit, assertAwaited: () => assertAwaited(raw) });
      return reply.code(204).send(null);
    },
  );
}

function listRequiredPolicies(app: RouteScope, { policyPacks, stacks }: Services): void {
  app.get(
    `${stackPath}/policypacks`,
    {
      config: { ...read, rate: 'repeated' },
      schema: {
        tags,
        summary: 'List the policy packs that updates of the stack must run',
        security: apiToken,
        params: StackParams,
        response: { 200: RequiredPoliciesResponse },
      },
    },
    async ({ params }) => {
      await stacks.get(params);
      return { requiredPolicies: await policyPacks.listRequired(params) };
    },
  );
}

/** The error for `pulumi cancel` of an idle stack: with 404, the command would say "has never been updated". */
function nothingToCancel(ref: StackRef): ConflictError {
  return new ConflictError(`No update of stack '${formatStackRef(ref)}' is in progress, so there is nothing to cancel`);
}
