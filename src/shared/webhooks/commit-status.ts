import { type EventFacts, type EventOrigin, originOf, sentenceOf } from './event-facts.ts';

/** Sets the status, or gives the reason for not doing so. */
export type StatusRequest =
  | { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly body: string }
  | { readonly leftOut: string };

/** GitHub's limit. */
const maxDescriptionChars = 140;
const ofUpdates = /^(update|preview|destroy|refresh)_(started|succeeded|failed)$/;
const namePart = /^(?!\.{1,2}$)[\w.-]{1,100}$/;

/** The names come from the client of the update, so they must look like a repository and a commit of the webhook's host. */
export function statusRequestOf(format: string, base: string, token: string | null, facts: EventFacts): StatusRequest {
  const { event, update } = facts;
  if (!update || !ofUpdates.test(event)) return { leftOut: 'the event is not about an update' };
  const { ciUrl, host, owner, repository } = update.origin;
  const sha = shaOf(update.origin);
  if (!/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(sha)) return { leftOut: 'the update names no commit' };
  // For a remote over HTTP, the CLI includes the port.
  if (host.toLowerCase().replace(/:\d+$/, '') !== hostOf(base)) return { leftOut: 'the repository is on another host' };
  const owners = owner.split('/');
  if (![...owners, repository].every((part) => namePart.test(part)))
    return { leftOut: 'the update names no repository' };
  const name = `pulumi/${facts.project}/${facts.stack}${update.isPreview ? ' (preview)' : ''}`;
  const description = shortened(sentenceOf(facts));
  const link = ciUrl === '' ? {} : { target_url: ciUrl };
  const root = base.replace(/\/+$/, '');
  if (format === 'github_status') {
    if (owners.length !== 1) return { leftOut: 'the update names no repository' };
    const states: Readonly<Record<string, string>> = { succeeded: 'success', failed: 'failure', cancelled: 'error' };
    const state = update.result === null ? 'pending' : (states[update.result] ?? 'error');
    return {
      url: `${root}/repos/${owner}/${repository}/statuses/${sha}`,
      headers: {
        'content-type': 'application/json',
        accept: 'application/vnd.github+json',
        'x-github-api-version': '2022-11-28',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ state, context: name, description, ...link }),
    };
  }
  const states: Readonly<Record<string, string>> = { succeeded: 'success', failed: 'failed', cancelled: 'canceled' };
  const state = update.result === null ? 'running' : (states[update.result] ?? 'failed');
  const api = root.endsWith('/api/v4') ? root : `${root}/api/v4`;
  return {
    url: `${api}/projects/${encodeURIComponent(`${owner}/${repository}`)}/statuses/${sha}`,
    headers: { 'content-type': 'application/json', ...(token === null ? {} : { 'private-token': token }) },
    body: JSON.stringify({ state, name, description, ...link }),
  };
}

function shaOf({ commit, pullRequestHead }: EventOrigin): string {
  return (pullRequestHead || commit).toLowerCase();
}

/**
 * A later update of the same stack sets the same status, which a late retry would overwrite. `listLater` returns the environments of
 * updates that may concern it.
 */
export async function isReplaced(
  { update }: EventFacts,
  listLater: (updateId: string, commit: string) => Promise<readonly string[]>,
): Promise<boolean> {
  if (!update) return false;
  const { host, owner, repository } = update.origin;
  const sha = shaOf(update.origin);
  const later = (await listLater(update.id, sha)).map(originOf);
  return later.some(
    (other) => shaOf(other) === sha && other.host === host && other.owner === owner && other.repository === repository,
  );
}

/** The repositories' host, from the URL of its API. */
function hostOf(base: string): string {
  const { hostname } = new URL(base);
  return hostname === 'api.github.com' ? 'github.com' : hostname;
}

function shortened(text: string): string {
  return text.length <= maxDescriptionChars ? text : `${text.slice(0, maxDescriptionChars - 1).toWellFormed()}…`;
}

/** GitLab refuses a status that the commit already has, e.g. after a repeated request. */
export function isAlreadySet(format: string, status: number, body: string): boolean {
  return format === 'gitlab_status' && status === 400 && body.includes('Cannot transition status');
}
