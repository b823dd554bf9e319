import { Type } from 'typebox';
import { asHeader, describeFault, warningHeader } from '../../shared/journal/journal-fault.ts';
import { textInPieces } from '../../shared/platform/db/text-pieces.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import {
  ContractCreateStackResponse,
  ContractRenameStackRequest,
  ContractStackResponse,
  ContractTagsRequest,
} from '../../shared/protocol/contract.ts';
import { AnyObject, ProjectParams, StackParams } from '../../shared/protocol/core.ts';
import {
  CreateStackRequest,
  CreateStackResponse,
  DeleteStackQuery,
  ListStacksQuery,
  ListStacksResponse,
  RenameStackRequest,
  StackConfig,
  StackResponse,
} from '../../shared/protocol/stacks.ts';
import { parseTags, tagsOfRequest } from '../../shared/stacks/tags.ts';
import type { ApiContext } from '../api-context.ts';
import { assertAwaited } from '../plugins/awaited.ts';
import { receiveBody } from '../plugins/body.ts';
import type { RouteScope } from '../route-scope.ts';
import { readCreateRequest } from '../stacks/create-request.ts';
import { renameTarget, StackRenaming } from '../stacks/stack-renaming.ts';
import { StackService } from '../stacks/stack-service.ts';
import { sendPieces } from '../streamed-answer.ts';
import { UpdateService } from '../updates/update-service.ts';
import { createStackAnswer, listedStackAnswer, stackAnswer } from './answers.ts';
import { apiToken, projectPath, stackPath } from './paths.ts';

const tags = ['stacks'];
const viewer = { access: { kind: 'organization', role: 'viewer' } } as const;
const member = { access: { kind: 'organization', role: 'member' } } as const;
const admin = { access: { kind: 'organization', role: 'admin' } } as const;

/** Stacks as resources. */
export function registerStackRoutes(app: RouteScope, context: ApiContext): void {
  const updates = new UpdateService(context);
  const settle: UpdateService['settle'] = (stackId, options) => updates.settle(stackId, options);
  const stacks = new StackService(context, settle);
  const renaming = new StackRenaming(context, settle);

  app.post(
    projectPath,
    {
      // The service decides on roles: the organization may not exist yet.
      config: {
        access: { kind: 'user' },
        body: 'payload',
        described: { body: CreateStackRequest, refusals: [403, 409] },
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
      const { params, caller, dialect } = raw;
      const { body, release } = await receiveBody(context, raw, context.config.limits.maxControlBodyBytes);
      const stack = await (async () => {
        const { request, state } = await readCreateRequest(body);
        return stacks.create(caller, {
          ref: { ...params, stack: request.stackName },
          tags: parseTags(request.tags ?? {}),
          state,
          remoteConfig: request.config ?? null,
        });
      })().finally(release);
      return createStackAnswer(dialect, stack);
    },
  );

  app.head(
    projectPath,
    {
      config: { ...viewer, swagger: { exposeHeadRoute: true } },
      schema: { tags, summary: 'Whether the project exists', security: apiToken, params: ProjectParams },
    },
    async ({ params }, reply) => {
      if (!(await context.stacks.projectExists(params.organization, params.project)))
        throw new NotFoundError('Project not found');
      return reply.code(200).send();
    },
  );

  app.get(
    '/api/user/stacks',
    {
      config: { access: { kind: 'user' } },
      schema: {
        tags,
        summary: 'List stacks',
        security: apiToken,
        querystring: ListStacksQuery,
        response: { 200: ListStacksResponse },
      },
    },
    async ({ caller, dialect, query }) => {
      const page = await stacks.list(caller, {
        organization: query.organization || null,
        project: query.project || null,
        tagName: query.tagName || null,
        tagValue: query.tagName ? (query.tagValue ?? null) : null,
        continuationToken: query.continuationToken || null,
      });
      return {
        stacks: page.stacks.map((stack) => listedStackAnswer(dialect, stack)),
        // An empty token would send the CLI round for ever: the last page has none at all.
        ...(page.continuationToken === null ? {} : { continuationToken: page.continuationToken }),
      };
    },
  );

  app.get(
    stackPath,
    {
      config: viewer,
      schema: {
        tags,
        summary: 'Get a stack',
        security: apiToken,
        params: StackParams,
        response: { 200: Type.Union([StackResponse, ContractStackResponse]) },
      },
    },
    async ({ params, dialect }, reply) => {
      const stack = await stacks.get(params);
      const faults = await context.folds.findFaults(stack.id);
      if (faults.length > 0) void reply.header(warningHeader, asHeader(faults.map(describeFault).join(' ')));
      const error = faults.find(({ foldError }) => foldError !== null);
      const operation = stack.activeUpdateId === null ? null : await context.stacks.findCurrentOperation(stack.id);
      const foldError = error ? describeFault(error) : null;
      const answer = stackAnswer(dialect, stack, { operation, foldError });
      if (stack.remoteConfigBytes === null || dialect === 'contract') return answer;
      const withConfig = async function* (): AsyncGenerator<string> {
        yield `${JSON.stringify(answer).slice(0, -1)},"config":`;
        yield* textInPieces((from, chars) => context.stacks.readRemoteConfig(stack.id, from, chars));
        yield '}';
      };
      return sendPieces(reply, withConfig());
    },
  );

  app.delete(
    stackPath,
    {
      config: { ...admin, described: { refusals: [409] } },
      schema: {
        tags,
        summary: 'Delete a stack',
        security: apiToken,
        params: StackParams,
        querystring: DeleteStackQuery,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, query, dialect }, reply) => {
      // The CLI always says; a client of the contract, which knows no such parameter, means to delete.
      const force = query.force === undefined ? dialect === 'contract' : query.force.toLowerCase() === 'true';
      await stacks.delete(params, { keepResources: !force });
      return reply.code(204).send(null);
    },
  );

  app.post(
    `${stackPath}/rename`,
    {
      config: { ...member, contractBody: ContractRenameStackRequest, described: { refusals: [409] } },
      schema: {
        tags,
        summary: 'Rename a stack',
        security: apiToken,
        params: StackParams,
        body: RenameStackRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body, caller, dialect, raw }, reply) => {
      const target = renameTarget(params, body, dialect);
      await renaming.rename(params, target, { caller, assertAwaited: () => assertAwaited(raw) });
      return reply.code(204).send(null);
    },
  );

  app.patch(
    `${stackPath}/tags`,
    {
      config: { ...member, contractBody: ContractTagsRequest },
      schema: {
        tags,
        summary: 'Replace all tags',
        security: apiToken,
        params: StackParams,
        body: AnyObject,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body, dialect }, reply) => {
      const { tags: contractTags } = body as { tags?: unknown };
      await stacks.replaceTags(params, dialect === 'contract' ? parseTags(contractTags) : tagsOfRequest(body));
      return reply.code(204).send(null);
    },
  );

  app.put(
    `${stackPath}/config`,
    {
      config: member,
      schema: {
        tags,
        summary: 'Set the remote configuration',
        security: apiToken,
        params: StackParams,
        body: StackConfig,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body }, reply) => {
      await stacks.setRemoteConfig(params, body);
      return reply.code(204).send(null);
    },
  );

  app.get(
    `${stackPath}/policypacks`,
    {
      config: viewer,
      schema: {
        tags,
        summary: 'Required policies: none',
        security: apiToken,
        params: StackParams,
        response: { 200: Type.Object({ requiredPolicies: Type.Array(Type.Unknown()) }) },
      },
    },
    async ({ params }) => {
      await stacks.get(params);
      return { requiredPolicies: [] };
    },
  );
}
