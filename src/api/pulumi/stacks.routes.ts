import { Type } from 'typebox';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { AnyObject, ProjectParams, StackParams } from '../../shared/protocol/core.ts';
import {
  CreateStackRequest,
  CreateStackResponse,
  DeleteStackQuery,
  ListStacksQuery,
  ListStacksResponse,
  RenameStackRequest,
  StackResponse,
} from '../../shared/protocol/stacks.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import { parseTags, tagsOfRequest } from '../../shared/stacks/tags.ts';
import type { ApiContext } from '../api-context.ts';
import { assertAwaited } from '../plugins/awaited.ts';
import { receiveBody } from '../plugins/body.ts';
import type { RouteScope } from '../route-scope.ts';
import { readCreateRequest } from '../stacks/create-request.ts';
import { isCancelCommand, nothingToCancel } from '../stacks/idle-cancel.ts';
import { stackListJson } from '../stacks/stack-list.ts';
import { renameTarget, StackRenaming } from '../stacks/stack-renaming.ts';
import { StackService } from '../stacks/stack-service.ts';
import { readStackView } from '../stacks/stack-view.ts';
import { sendPieces } from '../streamed-answer.ts';
import { UpdateService } from '../updates/update-service.ts';
import { lastUpdateAnswer, stackAnswer, warnOfFaults } from './answers.ts';
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
        response: { 200: CreateStackResponse },
      },
    },
    async (raw) => {
      const { params, caller } = raw;
      const { body, release } = await receiveBody(context, raw, context.config.limits.maxControlBodyBytes);
      const stack = await (async () => {
        const { request, state } = await readCreateRequest(body);
        return stacks.create(caller, {
          ref: { ...params, stack: request.stackName },
          tags: parseTags(request.tags ?? {}),
          state,
        });
      })().finally(release);
      return {
        id: formatStackRef(stack),
        orgName: stack.organization,
        projectName: stack.project,
        stackName: stack.stack,
        tags: stacks.tagsOf(stack),
        version: stack.stackVersion,
        messages: [],
      };
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
      config: { access: { kind: 'user' }, described: { answers: { 200: ListStacksResponse } } },
      schema: { tags, summary: 'List stacks', security: apiToken, querystring: ListStacksQuery },
    },
    async ({ caller, dialect, query }, reply) => {
      const pieces = stacks.list(caller, {
        organization: query.organization || null,
        project: query.project || null,
        tagName: query.tagName || null,
        tagValue: query.tagName ? (query.tagValue ?? null) : null,
        continuationToken: query.continuationToken || null,
      });
      const answer = stackListJson(pieces, (stack) => {
        const lastUpdate = lastUpdateAnswer(dialect, stack);
        return {
          id: stack.id,
          orgName: stack.organization,
          projectName: stack.project,
          stackName: stack.stack,
          tags: stacks.tagsOf(stack),
          version: stack.stackVersion,
          activeUpdate: stack.activeUpdateId ?? '',
          ...(lastUpdate === undefined ? {} : { lastUpdate }),
          ...(stack.resourceCount === null ? {} : { resourceCount: stack.resourceCount }),
        };
      });
      return sendPieces(reply, answer);
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
        response: { 200: StackResponse },
      },
    },
    async ({ headers, params }, reply) => {
      const stack = await stacks.get(params);
      if (stack.activeUpdateId === null && isCancelCommand(headers['user-agent'])) throw nothingToCancel(params);
      const view = await readStackView(context.db, stack);
      warnOfFaults(reply, view);
      return stackAnswer(view);
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
      config: { ...member, described: { refusals: [409] } },
      schema: {
        tags,
        summary: 'Rename a stack',
        security: apiToken,
        params: StackParams,
        body: RenameStackRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body, caller, raw }, reply) => {
      await renaming.rename(params, renameTarget(params, body), { caller, assertAwaited: () => assertAwaited(raw) });
      return reply.code(204).send(null);
    },
  );

  app.patch(
    `${stackPath}/tags`,
    {
      config: member,
      schema: {
        tags,
        summary: 'Replace all tags',
        security: apiToken,
        params: StackParams,
        body: AnyObject,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body }, reply) => {
      await stacks.replaceTags(params, tagsOfRequest(body));
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
