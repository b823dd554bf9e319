import { ConflictError } from '../../../shared/platform/errors/errors.ts';
import type { Tags } from '../../../shared/stacks/tags.ts';
import { cancelHint } from '../../../shared/updates/deferred.ts';
import type { UpdateRules } from '../../../shared/updates/rules/update-rules.ts';
import type { QueueLoss, WaitingRun } from '../../../shared/updates/update-queue-repository.ts';
import { environmentTexts } from './run-view.ts';
import { isTerminalLink } from './update-queue-messages.ts';

/** The stack tag that sets which waiting runs a newer run supersedes. */
export const supersedeTag = 'supersede';
const modes = ['branch', 'pull-request', 'nothing'] as const;
type SupersedeMode = (typeof modes)[number];

/** The update was superseded by a newer commit while it waited, or a user evicted it. */
export class SupersededError extends ConflictError {
  override readonly name = 'SupersededError';
  override readonly code = 'superseded';
  constructor(loss: QueueLoss) {
    super('evictedBy' in loss ? describeEviction(loss) : describeNewer(loss));
  }
}

function describeNewer({ commit, url }: Extract<QueueLoss, { commit: string }>): string {
  const link = url !== null && isTerminalLink(url) ? ` (${url})` : '';
  return `Superseded by commit ${commit}${link}, which also waits for the stack: this run of an older commit was removed from the queue, and has changed nothing. ${cancelHint}`;
}

function describeEviction({ evictedBy, reason }: Extract<QueueLoss, { evictedBy: string }>): string {
  return `${evictedBy} has removed this run from the queue of the stack${reason === '' ? '' : `: ${reason}`}. It has changed nothing. ${cancelHint}`;
}

export function supersedeProblem(mode: string | undefined): string | null {
  if (mode === undefined || isMode(mode)) return null;
  return `The tag ${supersedeTag} must be one of ${modes.join(', ')}, not ${JSON.stringify(mode)}`;
}

/**
 * The identity by which newer runs may supersede the update, and it older runs. The stack's tag decides, otherwise the organization's
 * rules.
 */
export function waitingRun(tags: Tags, rules: UpdateRules, kind: string, environment: object): WaitingRun | null {
  const tag = tags[supersedeTag];
  const mode = tag !== undefined && isMode(tag) ? tag : (rules.first('supersede')?.settings.by ?? 'nothing');
  if (mode === 'nothing') return null;
  const text = environmentTexts(environment);
  const commit = (mode === 'pull-request' ? text('ci.pr.headSHA') : null) ?? text('git.head');
  const name = mode === 'branch' ? text('git.headName') : text('ci.pr.number');
  // A detached head has no branch.
  if (commit === null || name === null || name === 'HEAD') return null;
  const build = text('ci.build.number');
  const isNumber = build !== null && /^\d{1,15}$/.test(build);
  return {
    // The other parts distinguish runs with the same name.
    series: JSON.stringify([mode, name, text('vcs.owner'), text('vcs.repo'), kind]),
    commit,
    url: text('ci.build.url'),
    builds: isNumber ? JSON.stringify([text('ci.system'), text('ci.build.type')]) : null,
    build: isNumber ? Number(build) : null,
  };
}

function isMode(text: string): text is SupersedeMode {
  return modes.some((mode) => mode === text);
}
