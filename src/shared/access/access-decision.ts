import { type Static, Type } from 'typebox';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { nameMatches } from '../stacks/name-pattern.ts';
import type { Tags } from '../stacks/tags.ts';
import {
  allPermissions,
  hasPermission,
  noPermissions,
  type PermissionSet,
  permissionSet,
  usable,
} from './permissions.ts';

const Text = Nullable(Type.String());

/** Null matches everything. */
export const GrantFacts = Type.Object({
  deny: Type.Boolean(),
  /** The grant belongs to the token itself, not to its owner. */
  token: Type.Boolean(),
  permissions: Type.Integer(),
  project: Text,
  stack: Text,
  tagName: Text,
  /** Null matches any value. */
  tagValue: Text,
});
export type GrantFacts = Static<typeof GrantFacts>;

const ScopeFacts = Type.Object({ permissions: Type.Integer(), project: Text, stack: Text });

/** The facts about a token's holder in one organization, collected by the database function token_facts. */
export const SubjectFacts = Type.Object({
  /** The permissions of the role. */
  base: Type.Integer(),
  grants: Type.Array(GrantFacts),
  /** Null if the token has no limits. */
  scopes: Nullable(Type.Array(ScopeFacts)),
});
export type SubjectFacts = Static<typeof SubjectFacts>;

export interface StackFacts {
  readonly project: string;
  readonly stack: string;
  readonly tags: Tags;
}

/**
 * Returns what the role and the grants of the owner allow, less what any grant denies, within the token's own scopes and grants. Permission
 * to read a stack includes its outputs, so a token may be limited to outputs alone. The database function effective_permissions is the same
 * rule, for lists.
 */
export function decide(subject: SubjectFacts, stack: StackFacts): PermissionSet {
  const matching = matchingGrants(subject.grants, stack);
  const sum = (grants: readonly { readonly permissions: PermissionSet }[]): PermissionSet =>
    grants.reduce((set, { permissions }) => set | permissions, noPermissions);
  const ofOwner = subject.base | sum(matching.filter(({ deny, token }) => !deny && !token));
  const denied = sum(matching.filter(({ deny }) => deny));
  const ofToken =
    subject.scopes === null
      ? allPermissions
      : sum(subject.scopes.filter((scope) => namesMatch(scope, stack))) |
        sum(matching.filter(({ deny, token }) => !deny && token));
  return leftOf(ofOwner, denied, ofToken);
}

/** Like `decide`, for grants alone. */
export function decideOfGrants({ allowed, denied }: { allowed: PermissionSet; denied: PermissionSet }): PermissionSet {
  return leftOf(allowed, denied, allPermissions);
}

function leftOf(allowed: PermissionSet, denied: PermissionSet, limit: PermissionSet): PermissionSet {
  const left = allowed & ~denied;
  const outputs = hasPermission(left, 'read') ? permissionSet(['outputs']) & ~denied : noPermissions;
  return usable((left | outputs) & limit);
}

/** Whether `decide` returns the same on all stacks of a project, whatever their names and tags. */
export function isByProject({ grants, scopes }: Partial<SubjectFacts>): boolean {
  return (
    (grants ?? []).every(({ stack, tagName }) => stack === null && tagName === null) &&
    (scopes ?? []).every(({ stack }) => stack === null)
  );
}

/** Whether `decide` permits reading all stacks of the project, whatever their names and tags. */
export function readsAll({ base, grants, scopes }: SubjectFacts, project: string): boolean {
  const ofAll = grants
    .filter(({ deny, stack, tagName }) => deny || (stack === null && tagName === null))
    .map((each) => ({ ...each, stack: null, tagName: null }));
  const subject = { base, grants: ofAll, scopes: scopes?.filter(({ stack }) => stack === null) ?? null };
  return hasPermission(decide(subject, { project, stack: '', tags: {} }), 'read');
}

export function matchingGrants<Grant extends GrantFacts>(grants: readonly Grant[], stack: StackFacts): Grant[] {
  return grants.filter((grant) => namesMatch(grant, stack) && tagMatches(grant, stack.tags));
}

export function namesMatch(
  pattern: { project: string | null; stack: string | null },
  { project, stack }: StackFacts,
): boolean {
  return nameMatches(pattern.project, project) && nameMatches(pattern.stack, stack);
}

function tagMatches({ tagName, tagValue }: GrantFacts, tags: Tags): boolean {
  if (tagName === null) return true;
  return Object.hasOwn(tags, tagName) && (tagValue === null || tags[tagName] === tagValue);
}
