import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';
import type { StackWithRules } from '../../../shared/updates/rules/update-rule-repository.ts';
import { type ApplicableRule, describeScope } from '../../../shared/updates/rules/update-rules.ts';
import { createPreviewRepository } from './preview-repository.ts';

export interface PreviewCheck {
  readonly rule: ApplicableRule<'require-preview'>;
  readonly previewId: string | null;
  /** The reason for the user why no preview counts. */
  readonly problem: string | null;
}

/**
 * The update has no preview that counts. The status is 403: the CLI takes 409 to mean that another update holds the stack, but waiting does
 * not help.
 */
export class PreviewNeededError extends ForbiddenError {
  override readonly name = 'PreviewNeededError';
  override readonly code = 'preview-needed';
}

/** A refresh only reads existing resources into the state. */
const previewedKinds: ReadonlySet<string> = new Set(['update', 'destroy']);

export function previewRule(stack: StackWithRules, kind: string): ApplicableRule<'require-preview'> | null {
  const rule = previewedKinds.has(kind) ? stack.updateRules.first('require-preview') : null;
  return rule && rule.settings.mode !== 'off' ? rule : null;
}

/** `commit`: null if it is unknown, or if there are uncommitted changes. The caller has locked the stack. */
export async function checkPreview(
  tx: Queryable,
  rule: ApplicableRule<'require-preview'>,
  { commit, kind, stack }: { readonly stack: StackWithRules; readonly kind: string; readonly commit: string | null },
): Promise<PreviewCheck> {
  const countsOwn = rule.settings.ownPreview !== 'ignored';
  const preview =
    commit === null
      ? null
      : await createPreviewRepository(tx).findNewest({ stackId: stack.id, kind, commit, countsOwn });
  const isCurrent = preview?.stackVersion === stack.stackVersion;
  const found = { rule, previewId: isCurrent ? preview.id : null };
  if (isCurrent) return { ...found, problem: null };
  const why =
    commit === null
      ? 'this run has no Git commit, or has local changes'
      : preview === null
        ? `there is none of commit ${commit}`
        : `that of commit ${commit} was of version ${preview.stackVersion}, and the stack is at ${stack.stackVersion}`;
  return { ...found, problem: describeProblem(stack, { rule, kind, why }) };
}

/** The message for an update whose preview will be out of date when the stack is free. */
export function describeBusy(stack: StackWithRules, rule: ApplicableRule<'require-preview'>, kind: string): string {
  return describeProblem(stack, {
    rule,
    kind,
    why: 'another update holds the stack, after which it will be out of date',
  });
}

function describeProblem(
  { organization }: StackWithRules,
  { rule, kind, why }: { rule: ApplicableRule<'require-preview'>; kind: string; why: string },
): string {
  const command = kind === 'destroy' ? 'pulumi destroy --preview-only' : 'pulumi preview';
  const note = rule.note === '' ? '' : ` (${rule.note})`;
  const rest =
    rule.settings.mode === 'warn' ? `: ${command}` : `. Run ${command} again, look at it, and then run this one`;
  return `Updates of ${describeScope(rule, organization)} need a preview of the same commit and stack version${note}, and ${why}${rest}`;
}
