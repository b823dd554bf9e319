import { isDeepStrictEqual } from 'node:util';
import { titleOf } from './document.ts';
import type { Change, FieldChange, OrganizationPlan } from './plan.ts';

const marks = { create: '+', change: '~', delete: '-' } as const;
const maxValueChars = 200;

export function* planLines(plans: readonly OrganizationPlan[]): Generator<string> {
  for (const change of plans.flatMap(({ changes }) => changes)) {
    yield `${marks[change.action]} ${titleOf(change)}`;
    for (const field of change.fields) yield* fieldLines(change, field);
  }
  for (const { members, ...each } of plans.flatMap(({ waiting }) => waiting))
    yield `? ${titleOf(each)} waits until ${members.join(', ')} ${members.length === 1 ? 'accepts the invitation' : 'accept the invitations'}`;
  const { change, create, delete: deleted, unchanged } = countsOf(plans);
  yield create + change + deleted === 0
    ? `No changes: ${counted(unchanged)} as declared.`
    : `Plan: ${create} to create, ${change} to change, ${deleted} to delete, ${unchanged} unchanged.`;
}

export function planJson(plans: readonly OrganizationPlan[]) {
  return {
    counts: countsOf(plans),
    changes: plans
      .flatMap(({ changes }) => changes)
      .map(({ action, fields, kind, name, organization }) => ({ action, kind, organization, name, fields })),
    waiting: plans.flatMap(({ waiting }) => waiting),
  };
}

export function countsOf(plans: readonly OrganizationPlan[]) {
  const of = (action: Change['action']): number =>
    plans.reduce((total, { changes }) => total + changes.filter((each) => each.action === action).length, 0);
  const unchanged = plans.reduce((total, plan) => total + plan.unchanged, 0);
  return { create: of('create'), change: of('change'), delete: of('delete'), unchanged };
}

function counted(objects: number): string {
  return `${objects} ${objects === 1 ? 'object is' : 'objects are'}`;
}

function* fieldLines({ action }: Change, { field, from, to }: FieldChange): Generator<string> {
  if (action === 'create') {
    if (to !== null && to !== undefined) yield `    ${field}: ${shown(to)}`;
  } else if (Array.isArray(from) && Array.isArray(to)) {
    const missing = (list: readonly unknown[], among: readonly unknown[]) =>
      list.filter((each) => !among.some((other) => isDeepStrictEqual(each, other)));
    const [gone, added] = [missing(from, to), missing(to, from)];
    const parts = [...gone.map((each) => `- ${shown(each)}`), ...added.map((each) => `+ ${shown(each)}`)];
    yield `    ${field}: ${parts.length === 0 ? 'in another order' : parts.join(', ')}`;
  } else yield `    ${field}: ${shown(from)} → ${shown(to)}`;
}

function shown(value: unknown): string {
  if (typeof value === 'string' && value.startsWith('(secret)')) return value;
  const text = JSON.stringify(value ?? null);
  return text.length > maxValueChars ? `${text.slice(0, maxValueChars)}…` : text;
}
