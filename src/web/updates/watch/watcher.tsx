import { useEffect, useRef } from 'react';
import { errorCode } from '../../platform/app/api-error.ts';
import { keepNotified, useLive } from '../../platform/app/live.ts';
import { useMe } from '../../platform/app/me.ts';
import type { UpdateItem } from '../../platform/app/procedure-types.ts';
import { hasDraft } from '../../platform/app/session.ts';
import { apiClient } from '../../platform/app/trpc.ts';
import { viewKind, viewStatus } from '../update-status.ts';
import { followRename, listWatched, noteEnd, unwatch, useWatched, type Watched } from './watched.ts';

/** Polling interval without the stream. */
const pollMs = 60_000;
/** In a busy organization, updates end all the time: all watched items are read once in this time. */
const settleMs = 3_000;
/** The maximum of a stack between two checks. */
const maxEnds = 5;

/** Shows notifications for the items that this browser watches. */
export default function Watcher() {
  const me = useMe();
  const login = me?.login;
  const watched = useWatched().filter((each) => each.login === login);
  const organizations = me?.organizations.map(({ name }) => name) ?? [];
  const followed = organizations.filter((name) => watched.some(({ organization }) => organization === name));
  useEffect(keepNotified, []);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const checkSoon = (): void => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      check(login);
    }, settleMs);
  };
  const subjects = watched.map(({ organization, project, stack, updateId }) => [
    organization,
    project,
    stack,
    updateId,
  ]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a newly watched update is checked immediately.
  useEffect(() => {
    check(login);
    const poll = setInterval(() => check(login), pollMs);
    return () => clearInterval(poll);
  }, [login, JSON.stringify(subjects)]);
  return followed.map((name) => <Follower key={name} organization={name} onChange={checkSoon} />);
}

/** Together, so that the items share one request. */
function check(login: string | undefined): void {
  void Promise.all(
    listWatched()
      .filter((each) => each.login === login)
      .map(look),
  );
}

/** The topic is the organization, because the topic of a deleted stack would end the stream of the whole page. */
function Follower({ onChange, organization }: { readonly organization: string; readonly onChange: () => void }) {
  useLive(`organization:${organization}`, onChange);
  return null;
}

async function look(watched: Watched): Promise<void> {
  const { organization, project, stack, updateId } = watched;
  const ref = { organization, project, stack };
  try {
    if (updateId !== null) {
      const update = await apiClient.updates.get.query({ ...ref, updateId });
      if (update.endedAt === null) return;
      unwatch(watched);
      notify(watched, update);
      return;
    }
    const { items } = await apiClient.updates.list.query({ ...ref, limit: maxEnds });
    const ended = items.filter((update) => update.endedAt !== null);
    const last = ended.reduce((max, { endedAt }) => ((endedAt ?? '') > max ? (endedAt ?? '') : max), '');
    // An end from before the watch is no news.
    if (watched.endedAt !== null)
      for (const update of ended) if ((update.endedAt ?? '') > watched.endedAt) notify(watched, update);
    if (last !== watched.endedAt) noteEnd(watched, last || new Date(0).toISOString());
  } catch (error) {
    if (errorCode(error) !== 'NOT_FOUND') return;
    await followRename(watched, () => apiClient.stacks.renamed.query(ref)).catch(() => {});
  }
}

function notify(
  { organization, project, stack }: Watched,
  update: Pick<UpdateItem, 'updateId' | 'kind' | 'dryRun' | 'version' | 'status' | 'message'>,
): void {
  const { message, status, updateId, version } = update;
  const name = `${viewKind(update)}${version === null ? '' : ` ${version}`}`;
  const path = [organization, project, stack, 'previews', updateId].map(encodeURIComponent).join('/');
  try {
    // Of several tabs, the last one replaces the notifications of the others.
    const shown = new Notification(`${project}/${stack}: ${name} ${viewStatus(status).word.toLowerCase()}`, {
      body: message,
      tag: `holdfast ${updateId}`,
    });
    shown.onclick = () => {
      window.focus();
      if (hasDraft()) open(`/${path}`, '_blank', 'noopener');
      else location.assign(`/${path}`);
      shown.close();
    };
  } catch {
    // The permission may have been withdrawn.
  }
}
