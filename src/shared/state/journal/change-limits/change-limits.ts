import { ForbiddenError } from '../../../platform/errors/errors.ts';
import { TimeSlices } from '../../../platform/slices/slices.ts';
import { maxMatchedChars, nameMatches } from '../../../stacks/name-pattern.ts';
import type { stoppingKinds } from '../../../updates/rules/rule-kinds.ts';
import { type ApplicableRule, describeScope, type UpdateRules } from '../../../updates/rules/update-rules.ts';
import { urnKey } from '../../deployments/live-urns.ts';
import type { BegunOperation } from './begin-entry.ts';

/** Quoted to the users whose updates the rule stops. */
interface QuotedRule {
  /** For example `project web`. */
  readonly scope: string;
  readonly note: string;
}

/** The rules as they were at the creation of the update. */
export interface ChangeLimits {
  /** For example `acme/web/prod`. */
  readonly stack: string;
  readonly kind: string;
  /** Null if unknown, or if there are uncommitted changes. */
  readonly commit: string | null;
  readonly changeLimit: (QuotedRule & { readonly changes: number | null; readonly percent: number | null }) | null;
  readonly needsJournal: boolean;
  readonly protectedTypes: readonly (QuotedRule & { readonly types: readonly string[] })[];
  /** The update must not exceed these changes. Missing or null if no rule requires a preview. */
  readonly preview?: (QuotedRule & { readonly updateId: string }) | null;
}

export interface Stop {
  /** For metrics, statistics and the audit log. */
  readonly reason: 'drain' | (typeof stoppingKinds)[number];
  /** For the user who runs the update. */
  readonly message: string;
}

/** Null if no rule limits the update. An approval of its commit lifts every limit except the preview's. */
export function changeLimitsOf(
  rules: UpdateRules,
  update: {
    readonly organization: string;
    readonly stack: string;
    readonly kind: string;
    readonly commit: string | null;
    readonly isApproved: boolean;
    readonly preview: { readonly rule: ApplicableRule<'require-preview'>; readonly updateId: string } | null;
  },
): ChangeLimits | null {
  const { isApproved, organization, preview, ...of } = update;
  const quote = (rule: Parameters<typeof describeScope>[0] & { readonly note: string }): QuotedRule => ({
    scope: describeScope(rule, organization),
    note: rule.note,
  });
  const changeLimit = isApproved ? null : rules.first('change-limit');
  const protectedTypes = isApproved ? [] : rules.all('protected-types');
  if (changeLimit === null && protectedTypes.length === 0 && preview === null) return null;
  return {
    ...of,
    changeLimit: changeLimit && {
      ...quote(changeLimit),
      changes: changeLimit.settings.changes ?? null,
      percent: changeLimit.settings.percent ?? null,
    },
    needsJournal: [changeLimit, ...protectedTypes, preview?.rule].some(
      (rule) => rule?.settings.withoutJournal === 'refuse',
    ),
    protectedTypes: protectedTypes.map((rule) => ({ ...quote(rule), types: rule.settings.types })),
    preview: preview && { ...quote(preview.rule), updateId: preview.updateId },
  };
}

/** The status is 403, because the CLI reads 409 as another update that holds the stack. */
export class JournalNeededError extends ForbiddenError {
  override readonly name = 'JournalNeededError';
  override readonly code = 'journal-needed';
  constructor({ stack }: ChangeLimits) {
    super(
      `The rules of ${stack} for deletes and replacements need an update that sends a journal: use Pulumi CLI 3.225 or later without ` +
        'PULUMI_DISABLE_JOURNALING (and a server whose HOLDFAST_CHECKPOINT_MODE is auto or journal)',
    );
  }
}

/** For each type of resource, the first rule that protects it. */
export type Protection = ReadonlyMap<string, ChangeLimits['protectedTypes'][number]>;

/** More types of a batch are not compared with patterns. The CLI sends far fewer. */
const maxComparedTypes = 500;

/** For the types of operations that may delete or replace a resource. Types beyond the maximum count as protected. */
export async function protectionOf(limits: ChangeLimits, begins: readonly BegunOperation[]): Promise<Protection> {
  const protection = new Map<string, ChangeLimits['protectedTypes'][number]>();
  const [first] = limits.protectedTypes;
  if (!first) return protection;
  const slices = new TimeSlices();
  const types = new Set(
    begins.filter((begin) => mayDelete(begin) || mayReplace(begin)).map((each) => each.resourceType),
  );
  let compared = 0;
  for (const type of types) {
    const rule =
      type.length > maxMatchedChars || ++compared > maxComparedTypes
        ? first
        : limits.protectedTypes.find((each) => each.types.some((pattern) => nameMatches(pattern, type)));
    if (rule) protection.set(type, rule);
    await slices.pause();
  }
  return protection;
}

/** The resources from before the update distinguish a new resource from a replacement. */
export function needsBase(limits: ChangeLimits, begins: readonly BegunOperation[], protection: Protection): boolean {
  const isForAll = limits.changeLimit !== null || Boolean(limits.preview);
  return begins.some((begin) => mayReplace(begin) && (isForAll || protection.has(begin.resourceType)));
}

/** Keyed by `urnKey`. `live` are the resources that already exist. */
export function changesAmong(
  begins: readonly BegunOperation[],
  live: Pick<ReadonlySet<string>, 'has'>,
): ReadonlyMap<string, BegunOperation> {
  const changes = new Map<string, BegunOperation>();
  for (const begin of begins) {
    const key = urnKey(begin.urn);
    if (mayDelete(begin) || (mayReplace(begin) && live.has(key))) changes.set(key, begin);
  }
  return changes;
}

/** The id of the preview, if the update begins a delete or a replacement. */
export function needsPreview({ preview }: ChangeLimits, begins: readonly BegunOperation[]): string | null {
  return preview && begins.some((begin) => begin.type === 'deleting' || mayReplace(begin)) ? preview.updateId : null;
}

/**
 * Null if the update may begin these changes. `before` is the number of changes begun earlier, `added` the number of new ones, `resources`
 * the number of resources in the update's base. `previewed` are the keys of the resources that its preview deletes or replaces.
 */
export function judge(
  limits: ChangeLimits,
  changes: Iterable<BegunOperation>,
  {
    before,
    added,
    previewed,
    protection,
    resources,
  }: {
    readonly before: number;
    readonly added: number;
    readonly previewed: ReadonlySet<string>;
    readonly protection: Protection;
    readonly resources: number;
  },
): Stop | null {
  const { changeLimit, preview } = limits;
  for (const change of changes) {
    const rule = protection.get(change.resourceType);
    if (rule) {
      const refusal = `No update of ${rule.scope} deletes or replaces a resource of this type without approval${quoted(rule)}; this one ${describe(change)}`;
      return { reason: 'protected-types', message: `${refusal}. ${howToGoOn(limits)}` };
    }
    if (preview && !previewed.has(urnKey(change.urn))) {
      const refusal = `No update of ${preview.scope} deletes or replaces more than its preview announced${quoted(preview)}; this one ${describe(change)}`;
      return {
        reason: 'require-preview',
        message: `${refusal}. ${nothingElse}. To continue, run a new preview, check it, and run the update again`,
      };
    }
  }
  if (changeLimit === null || added === 0) return null;
  const after = before + added;
  const isTooMany = changeLimit.changes !== null && after > changeLimit.changes;
  if (!isTooMany && (changeLimit.percent === null || after * 100 <= changeLimit.percent * resources)) return null;
  const most = [
    ...(changeLimit.changes === null ? [] : [String(changeLimit.changes)]),
    ...(changeLimit.percent === null ? [] : [`${changeLimit.percent}% of its ${resources} resources`]),
  ].join(' and ');
  const refusal = `An update of ${changeLimit.scope} deletes or replaces at most ${most}${quoted(changeLimit)}; this one has begun ${before} and is about to begin ${added} more`;
  return { reason: 'change-limit', message: `${refusal}. ${howToGoOn(limits)}` };
}

function mayReplace({ isManaged, type }: BegunOperation): boolean {
  return isManaged && (type === 'creating' || type === 'importing');
}

function mayDelete({ isManaged, type }: BegunOperation): boolean {
  return isManaged && type === 'deleting';
}

function quoted({ note }: QuotedRule): string {
  return note === '' ? '' : ` (${note})`;
}

function describe({ resourceType, type, urn }: BegunOperation): string {
  const name = urn.split('::').at(-1) ?? '';
  return `${type === 'deleting' ? 'deletes' : 'replaces'} ${shortened(resourceType)} ${JSON.stringify(shortened(name))}`;
}

const maxQuotedChars = 200;

function shortened(text: string): string {
  const beginning = text.length > maxQuotedChars ? `${text.slice(0, maxQuotedChars)}…` : text;
  return beginning.toWellFormed().replaceAll('\0', '');
}

const nothingElse = 'No more operations begin; running ones are finished and saved';

function howToGoOn({ commit, kind, stack }: ChangeLimits): string {
  if (commit === null) {
    return `${nothingElse}. To continue, run it from a Git commit without local changes, so that another user can approve that commit`;
  }
  const ofKind = kind === 'update' ? '' : ` --kind ${kind}`;
  return `${nothingElse}. To continue, have the commit approved (holdfast admin approve ${stack} ${commit}${ofKind} --reason …, or over HTTP) and run it again`;
}
