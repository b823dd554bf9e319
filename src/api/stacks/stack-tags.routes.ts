import { Type } from 'typebox';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { parseTags, tagsOfRequest } from '../../shared/stacks/tags.ts';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { ContractTagsRequest } from '../platform/protocol/contract.ts';
import { StackParams } from '../platform/protocol/core.ts';
import type { StackService } from './stack-service.ts';
import { ChangeTagRequest, SetTagRequest, TagParams, TagsRequest } from './stacks.schemas.ts';

export interface Services {
  readonly stacks: StackService;
}

const tags = ['stacks'];
const tagsPath = `${stackPath}/tags`;
const changed = { access: { kind: 'stack', permission: 'write' }, rate: 'held', audit: 'stack.tags' } as const;

/** All at once, as the CLI replaces them, or one at a time, as Pulumi's provider `pulumiservice` sets them. */
export function registerStackTagRoutes(app: RouteScope, services: Services): void {
  replaceTags(app, services);
  setTag(app, services);
  changeTag(app, services);
  removeTag(app, services);
}

function replaceTags(app: RouteScope, { stacks }: Services): void {
  app.patch(
    tagsPath,
    {
      config: { ...changed, contractBody: ContractTagsRequest },
      schema: {
        tags,
        summary: 'Replace all tags',
        security: apiToken,
        params: StackParams,
        body: TagsRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body, caller, dialect, audit }, reply) => {
      const { tags: contractTags } = body as { tags?: unknown };
      const all = dialect === 'contract' ? parseTags(contractTags) : tagsOfRequest(body);
      await stacks.replaceTags(caller, params, all, audit);
      return reply.code(204).send(null);
    },
  );
}

function setTag(app: RouteScope, { stacks }: Services): void {
  app.post(
    tagsPath,
    {
      config: changed,
      schema: {
        tags,
        summary: 'Set a tag',
        security: apiToken,
        params: StackParams,
        body: SetTagRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body: { name, value }, caller, audit }, reply) => {
      await stacks.editTag(caller, params, { name, value }, audit);
      return reply.code(204).send(null);
    },
  );
}

function changeTag(app: RouteScope, { stacks }: Services): void {
  app.patch(
    `${tagsPath}/:tag`,
    {
      config: changed,
      schema: {
        tags,
        summary: 'Change the value of a tag',
        security: apiToken,
        params: TagParams,
        body: ChangeTagRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params: { tag, ...stack }, body: { name = tag, value }, caller, audit }, reply) => {
      if (name !== tag) throw new InvalidRequestError('name is not the tag of the path: a tag keeps its name');
      await stacks.editTag(caller, stack, { name, value, mustExist: true }, audit);
      return reply.code(204).send(null);
    },
  );
}

function removeTag(app: RouteScope, { stacks }: Services): void {
  app.delete(
    `${tagsPath}/:tag`,
    {
      config: changed,
      schema: {
        tags,
        summary: 'Remove a tag',
        security: apiToken,
        params: TagParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ params: { tag, ...stack }, caller, audit }, reply) => {
      await stacks.editTag(caller, stack, { name: tag, value: null }, audit);
      return reply.code(204).send(null);
    },
  );
}
