import type { Permission } from './access-labels.ts';

/** What the role member gives, and what each needs. A viewer has `read` and `decrypt` of it. */
export const memberPermissions = ['read', 'preview', 'write', 'decrypt'] as const satisfies readonly Permission[];
type MemberPermission = (typeof memberPermissions)[number];

const needs: Readonly<Partial<Record<MemberPermission, readonly MemberPermission[]>>> = {
  preview: ['read'],
  write: ['read', 'preview'],
  decrypt: ['read'],
};

/** The permissions with all that they need. Null stands for all that the role has. */
export function withNeeds(names: readonly string[] | null): readonly MemberPermission[] {
  if (names === null) return memberPermissions;
  const chosen = memberPermissions.filter((name) => names.includes(name));
  return memberPermissions.filter(
    (name) => chosen.includes(name) || chosen.some((each) => needs[each]?.includes(name) === true),
  );
}

/** What viewers and members can no longer do by their roles. */
export function lostPermissions(before: readonly string[] | null, after: readonly string[] | null): MemberPermission[] {
  const left = withNeeds(after);
  return withNeeds(before).filter((name) => !left.includes(name));
}
