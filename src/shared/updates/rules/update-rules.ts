import { randomUUID } from 'node:crypto';
import { FaultError, InvalidRequestError } from '../../platform/errors/errors.ts';
import { isStorableJson } from '../../platform/json/storable-json.ts';
import { standard } from '../../platform/schema/standard-schema.ts';
import { assertProjectName, assertStackName } from '../../stacks/names.ts';
import { parseTags } from '../../stacks/tags.ts';
import {
  checkSettings,
  isRuleKind,
  type RuleKindName,
  type RuleSettings,
  ruleKindNames,
  ruleKinds,
  slotOf,
} from './rule-kinds.ts';

const maxNoteChars = 500;

/** Stacks that match all given fields. */
export interface RuleScope {
  readonly project: string | null;
  /** Set only together with `project`, and without a tag. */
  readonly stack: string | null;
  readonly tag: { readonly name: string; readonly value: string } | null;
}

export interface NewRule extends RuleScope {
  readonly kind: RuleKindName;
  readonly slot: string;
  readonly settings: object;
  readonly note: string;
}

export interface ApplicableRule<Kind extends RuleKindName = RuleKindName> extends RuleScope {
  readonly id: string;
  readonly kind: Kind;
  readonly settings: RuleSettings<Kind>;
  readonly note: string;
}

/** Throws InvalidRequestError. */
export function parseRule(written: {
  readonly kind: string;
  readonly project?: string | null | undefined;
  readonly stack?: string | null | undefined;
  readonly tag?: { readonly name: string; readonly value: string } | null | undefined;
  readonly settings: unknown;
  readonly note?: string | null | undefined;
}): NewRule {
  const { kind, project = null, stack = null, tag = null, note } = written;
  if (!isRuleKind(kind))
    throw new InvalidRequestError(
      `There is no rule kind ${JSON.stringify(kind.slice(0, 60))}: ${ruleKindNames.join(', ')}`,
    );
  if (project !== null) assertProjectName(project);
  if (stack !== null) {
    assertStackName(stack);
    if (project === null || tag !== null)
      throw new InvalidRequestError('A rule for a stack needs its project, and no tag');
  }
  if (tag !== null) parseTags({ [tag.name]: tag.value });
  const settings = parseSettings(kind, written.settings);
  const slot = slotOf(kind, settings) ?? randomUUID();
  return { kind, slot, project, stack, tag, settings, note: parseNote(note ?? '') };
}

function parseSettings(kind: RuleKindName, value: unknown): object {
  const problem = problemOf(kind, value);
  if (problem !== null) throw new InvalidRequestError(`The settings of a rule ${kind} are not valid: ${problem}`);
  if (!isStorableJson(value)) throw new InvalidRequestError(`The settings of a rule ${kind} are not valid text`);
  checkSettings(kind, value as object);
  return value as object;
}

function parseNote(note: string): string {
  if (note.length > maxNoteChars || !note.isWellFormed() || /\p{Cc}/u.test(note))
    throw new InvalidRequestError(`The note of a rule is one line of at most ${maxNoteChars} characters`);
  return note;
}

export function scopeOf(row: {
  readonly project: string | null;
  readonly stack: string | null;
  readonly tagName: string | null;
  readonly tagValue: string | null;
}): RuleScope {
  const { project, stack, tagName, tagValue } = row;
  return { project, stack, tag: tagName === null ? null : { name: tagName, value: tagValue ?? '' } };
}

/** For example `organization acme` or `stack web/prod`. */
export function describeScope({ project, stack, tag }: RuleScope, organization: string): string {
  if (stack !== null) return `stack ${project}/${stack}`;
  const suffix = project === null ? '' : ` of project ${project}`;
  if (tag !== null) return `stacks with the tag ${tag.name}=${tag.value}${suffix}`;
  return project === null ? `organization ${organization}` : `project ${project}`;
}

/** The most specific rules come first: stack, tag, project, organization. */
export class UpdateRules {
  static readonly none = new UpdateRules([], new Date(0));
  /** By the database's clock. */
  readonly now: Date;
  readonly #rules: readonly ApplicableRule[];

  constructor(rules: readonly ApplicableRule[], now: Date) {
    this.#rules = rules;
    this.now = now;
  }

  /** Reads the column of `applicableRules`. Throws FaultError if a rule of a kind known here cannot be understood. */
  static read(json: string | null): UpdateRules {
    if (json === null) return UpdateRules.none;
    const { now, rules } = JSON.parse(json) as { now: number; rules: readonly ApplicableRule[] };
    // Kinds that only a later release knows are ignored.
    const known = rules.filter(({ kind }) => isRuleKind(kind));
    for (const { id, kind, settings } of known) {
      const problem = problemOf(kind, settings);
      // The rule may forbid what would otherwise be allowed.
      if (problem !== null) throw new FaultError(`The rule ${id} (${kind}) cannot be understood: ${problem}`);
    }
    return new UpdateRules(known, new Date(now));
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0;
  }

  /** For kinds in which each rule counts. */
  all<Kind extends RuleKindName>(kind: Kind): readonly ApplicableRule<Kind>[] {
    return this.#rules.filter((rule): rule is ApplicableRule<Kind> => rule.kind === kind);
  }

  /** Rules that are in only one of the two sets. */
  difference(others: UpdateRules): readonly ApplicableRule[] {
    const missingIn = (rules: UpdateRules) => (rule: ApplicableRule) => !rules.#rules.some(({ id }) => id === rule.id);
    return [...this.#rules.filter(missingIn(others)), ...others.#rules.filter(missingIn(this))];
  }

  /** For kinds of which only the most specific rule counts. */
  first<Kind extends RuleKindName>(kind: Kind): ApplicableRule<Kind> | null {
    return this.all(kind)[0] ?? null;
  }
}

function problemOf(kind: RuleKindName, settings: unknown): string | null {
  const result = standard(ruleKinds[kind].settings)['~standard'].validate(settings);
  if (!('issues' in result)) return null;
  const shown = result.issues.slice(0, 3).map(({ message, path }) => `${path.join('.')} ${message}`.trim());
  return shown.join('; ');
}
