import { urnKey } from '../../deployments/live-urns.ts';
import { ForbiddenError } from '../../platform/errors/errors.ts';
import { nameMatches } from '../../stacks/name-pattern.ts';
import { describeScope, type UpdateRules } from '../../updates/rules/update-rules.ts';
import type { BegunOperation } from './begin-entry.ts';

/** A rule as it is quoted to those whom it stops. */
interface QuotedRule {
  /** As in `project web`. */
  readonly scope: string;
  readonly note: string;
}

/** The rules for deletes and replacements of one update, as they were when it was created. */
export interface GuardLimits {
  /** As in `acme/web/prod`. */
  readonly stack: string;
  readonly kind: string;
  /** The commit that the update runs; null if that is not known, or if there are changes besides. */
  readonly commit: string | null;
  readonly fuse: (QuotedRule & { readonly changes: number | null; readonly percent: number | null }) | null;
  /** Whether an update that sends no journal is refused. */
  readonly needsJournal: boolean;
  readonly protectedTypes: readonly (QuotedRule & { readonly types: readonly string[] })[];
}

/** Why an update may begin nothing more. */
export interface Stop {
  /** `drain`, or the kind of the rule that stopped it: for metrics and the audit log. */
  readonly reason: string;
  /** For those who run the update. */
  readonly message: string;
}

/** Null if no rule limits what an update deletes or replaces. */
export function limitsOf(
  rules: UpdateRules,
  update: {
    readonly organization: string;
    readonly stack: string;
    readonly kind: string;
    readonly commit: string | null;
  },
): GuardLimits | null {
  const { organization, ...of } = update;
  const quote = (rule: Parameters<typeof describeScope>[0] & { readonly note: string }): QuotedRule => ({
    scope: describeScope(rule, organization),
    note: rule.note,
  });
  const fuse = rules.first('fuse');
  const protectedTypes = rules.all('protected-types');
  if (fuse === null && protectedTypes.length === 0) return null;
  return {
    ...of,
    fuse: fuse && {
      ...quote(fuse),
      changes: fuse.settings.changes ?? null,
      percent: fuse.settings.percent ?? null,
    },
    needsJournal: [fuse, ...protectedTypes].some((rule) => rule?.settings.withoutJournal === 'refuse'),
    protectedTypes: protectedTypes.map((rule) => ({ ...quote(rule), types: rule.settings.types })),
  };
}

/**
 * A rule holds only for updates that send a journal, and refuses others. 403, because the CLI takes 409 for another update that holds
 * the stack.
 */
export class JournalNeededError extends ForbiddenError {
  override readonly name = 'JournalNeededError';
  override readonly code = 'journal-needed';
  constructor({ stack }: GuardLimits) {
    super(
      `The rules of ${stack} for deletes and replacements need an update that sends a journal: use Pulumi CLI 3.225 or later without ` +
        'PULUMI_DISABLE_JOURNALING (and a server whose HOLDFAST_CHECKPOINT_MODE is auto or journal)',
    );
  }
}

/** Whether it has to be known which resources there were, to tell a new resource from a replacement. */
export function needsBase(limits: GuardLimits, begins: readonly BegunOperation[]): boolean {
  return begins.some((begin) => mayReplace(begin) && (limits.fuse !== null || protecting(limits, begin) !== undefined));
}

/** The operations that delete a resource or replace it, by the keys of the resources. `live`: what there was before the update. */
export function changesAmong(
  begins: readonly BegunOperation[],
  live: ReadonlySet<string>,
): ReadonlyMap<string, BegunOperation> {
  const changes = new Map<string, BegunOperation>();
  for (const begin of begins) {
    const key = urnKey(begin.urn);
    if (begin.isManaged && (begin.type === 'deleting' || (mayReplace(begin) && live.has(key)))) changes.set(key, begin);
  }
  return changes;
}

/**
 * Why the update may not begin these changes; null if it may. `before`: how many it has begun; `added`: how many more these are;
 * `resources`: how many there were in its state.
 */
export function judge(
  limits: GuardLimits,
  changes: Iterable<BegunOperation>,
  { before, added, resources }: { readonly before: number; readonly added: number; readonly resources: number },
): Stop | null {
  for (const change of changes) {
    const rule = protecting(limits, change);
    if (rule) {
      const name = change.urn.split('::').at(-1) ?? '';
      const what = `${change.type === 'deleting' ? 'deletes' : 'replaces'} ${change.resourceType} ${JSON.stringify(name)}`;
      const refusal = `No update of ${rule.scope} deletes or replaces such a resource without approval${quoted(rule)}; this one ${what}`;
      return { reason: 'protected-types', message: `${refusal}. ${howToGoOn(limits)}` };
    }
  }
  const { fuse } = limits;
  if (fuse === null || added === 0) return null;
  const after = before + added;
  const isTooMany = fuse.changes !== null && after > fuse.changes;
  if (!isTooMany && (fuse.percent === null || after * 100 <= fuse.percent * resources)) return null;
  const most = [
    ...(fuse.changes === null ? [] : [String(fuse.changes)]),
    ...(fuse.percent === null ? [] : [`${fuse.percent}% of its ${resources} resources`]),
  ].join(' and ');
  const refusal = `An update of ${fuse.scope} deletes or replaces at most ${most}${quoted(fuse)}; this one has begun ${before} and is about to begin ${added} more`;
  return { reason: 'fuse', message: `${refusal}. ${howToGoOn(limits)}` };
}

function mayReplace({ isManaged, type }: BegunOperation): boolean {
  return isManaged && (type === 'creating' || type === 'importing');
}

function protecting(limits: GuardLimits, { resourceType }: BegunOperation) {
  return limits.protectedTypes.find(({ types }) => types.some((pattern) => nameMatches(pattern, resourceType)));
}

function quoted({ note }: QuotedRule): string {
  return note === '' ? '' : ` (${note})`;
}

function howToGoOn({ commit, kind, stack }: GuardLimits): string {
  const nothingElse = 'Nothing more begins; what is running is finished and saved';
  if (commit === null) {
    return `${nothingElse}. To go on, run it from a Git commit without local changes, so that somebody can approve that commit`;
  }
  const ofKind = kind === 'update' ? '' : ` --kind ${kind}`;
  return `${nothingElse}. To go on, have the commit approved (holdfast admin approve ${stack} ${commit}${ofKind} --reason …, or over HTTP) and run it again`;
}
