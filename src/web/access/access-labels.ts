import type { AccessHolder } from '../platform/app/procedure-types.ts';
import { accessLabelTexts } from './texts.tsx';

/** Weakest first. */
export const permissionLabels = accessLabelTexts.permissions;

export type Permission = keyof typeof permissionLabels;
export const permissions = Object.keys(permissionLabels) as readonly Permission[];

/** `of` has the names to choose from, including `name`. Names that only a newer server knows are kept. */
export function choosePermission(
  names: readonly string[],
  of: readonly Permission[],
  name: Permission,
  isChosen: boolean,
): string[] {
  const known = of.filter((each) => (each === name ? isChosen : names.includes(each)));
  return [...known, ...names.filter((each) => !Object.hasOwn(permissionLabels, each))];
}

/** The meaning of each role of a member. */
export const roleLabels = accessLabelTexts.roles;

type Reason = AccessHolder['decisions'][number]['reason'];

export const reasonLabels: Readonly<Record<Reason, string>> = accessLabelTexts.reasons;

/** Reasons for a denial, where the label differs. */
export function reasonOf({ allowed, reason }: { readonly allowed: boolean; readonly reason: Reason }): string {
  if (!allowed && reason === 'scopes') return accessLabelTexts.excludedByScopes;
  return reasonLabels[reason] ?? reason;
}
