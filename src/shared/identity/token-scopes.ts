import { type Static, Type } from 'typebox';
import { formatStackPattern, parsePermissions, parseStackPattern } from '../access/grants.ts';
import { allowedBy, namesOf } from '../access/permissions.ts';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { isOrganizationName } from '../stacks/names.ts';

/** Null matches all. */
export const TokenScope = Type.Object({
  organization: Nullable(Type.String()),
  project: Nullable(Type.String()),
  stack: Nullable(Type.String()),
  permissions: Type.Integer(),
});
export type TokenScope = Static<typeof TokenScope>;

const maxScopes = 50;

/** Names of permissions, and `project/stack` or `organization/project/stack`, with `*`. */
export interface WrittenScope {
  readonly permissions: readonly string[];
  readonly stacks: string;
}

/** Throws InvalidRequestError. */
export function parseScopes(scopes: readonly WrittenScope[]): TokenScope[] {
  if (scopes.length > maxScopes) throw new InvalidRequestError(`A token can have at most ${maxScopes} scopes`);
  return scopes.map(({ permissions, stacks }) => {
    const parts = stacks.split('/');
    const organization = parts.length === 3 ? (parts.shift() as string) : '*';
    if (organization !== '*' && !isOrganizationName(organization))
      throw new InvalidRequestError(`${JSON.stringify(organization.slice(0, 60))} is not a valid organization name`);
    return {
      organization: organization === '*' ? null : organization,
      ...parseStackPattern(parts.join('/')),
      permissions: allowedBy(parsePermissions(permissions)),
    };
  });
}

export function writeScope({ organization, permissions, ...pattern }: TokenScope): WrittenScope {
  const text = formatStackPattern(pattern);
  return { permissions: namesOf(permissions), stacks: organization === null ? text : `${organization}/${text}` };
}
