import { invalidValue, isObject, type JsonObject, memberOf, operationsOf, targetOf, textOf } from './scim-bodies.ts';
import { ScimError } from './scim-error.ts';
import type { ScimFilter } from './scim-filter.ts';
import { externalIdOf } from './user-attributes.ts';

export interface MemberChange {
  /** All members that are not added leave. */
  readonly replaces: boolean;
  readonly added: ReadonlySet<string>;
  readonly removed: ReadonlySet<string>;
}

/** Undefined members do not change. */
export interface GroupChange {
  readonly displayName?: string | undefined;
  readonly externalId?: string | null | undefined;
  readonly members: MemberChange;
}

export type WholeGroup = GroupChange & { readonly displayName: string; readonly externalId: string | null };

/** The group gets exactly these members. Throws ScimError. */
export function readGroup(body: JsonObject): WholeGroup {
  const displayName = displayNameOf(memberOf(body, 'displayName'));
  const members = idsOf(memberOf(body, 'members') ?? []);
  return {
    displayName,
    externalId: externalIdOf(memberOf(body, 'externalId')),
    members: { replaces: true, added: new Set(members), removed: new Set() },
  };
}

/** The operations of a PATCH apply in order. Throws ScimError. */
export function readGroupPatch(body: JsonObject): GroupChange {
  let displayName: string | undefined;
  let externalId: string | null | undefined;
  let replaces = false;
  const added = new Set<string>();
  const removed = new Set<string>();
  const leave = (ids: readonly string[]): void => {
    for (const id of ids) {
      added.delete(id);
      removed.add(id);
    }
  };
  const leaveAll = (): void => {
    replaces = true;
    added.clear();
    removed.clear();
  };
  for (const { op, path, value } of operationsOf(body)) {
    const target = targetOf(path);
    if (target?.attribute === 'displayname') {
      displayName = displayNameOf(op === 'remove' ? undefined : value);
    } else if (target?.attribute === 'externalid') {
      externalId = externalIdOf(op === 'remove' ? undefined : value);
    } else if (target?.attribute === 'members') {
      if (op === 'remove') {
        if (target.filter) leave(selectedIds(target.filter));
        else if (value === undefined || value === null) leaveAll();
        else leave(idsOf(value));
        continue;
      }
      if (target.filter) throw new ScimError('invalidPath', 'Members that a filter selects can only be removed');
      if (op === 'replace') leaveAll();
      for (const id of idsOf(value)) {
        added.add(id);
        removed.delete(id);
      }
    }
  }
  return { displayName, externalId, members: { replaces, added, removed } };
}

function displayNameOf(value: unknown): string {
  const name = textOf(value, 'displayName');
  if (name === '') throw invalidValue('displayName', 'is missing');
  return name;
}

function idsOf(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).map((member: unknown) => {
    const id = isObject(member) ? memberOf(member, 'value') : member;
    if (typeof id !== 'string') throw invalidValue('members', 'has a member without a value');
    return id.toLowerCase();
  });
}

/** The ids in `value eq "x"`, or in several of these terms. */
function selectedIds(filter: ScimFilter): string[] {
  if (filter.kind === 'or') return filter.terms.flatMap(selectedIds);
  if (filter.kind === 'compare' && filter.attribute === 'value' && filter.operator === 'eq')
    return [String(filter.value).toLowerCase()];
  throw new ScimError('invalidFilter', 'Members are selected by value eq "id"');
}
