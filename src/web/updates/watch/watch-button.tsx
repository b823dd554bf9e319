import { Bell, BellRing } from 'lucide-react';
import { useState } from 'react';
import { useMe } from '../../platform/app/me.ts';
import type { StackRef } from '../../platform/app/procedure-types.ts';
import { Button } from '../../platform/ui/button.tsx';
import { watchButtonTexts } from '../texts.tsx';
import { isSameWatch, unwatch, useWatched, watch } from './watched.ts';

/** Turns notifications in this browser on or off: when updates of the stack end, or when this update ends. */
export function WatchButton({
  stack,
  updateId = null,
}: {
  readonly stack: StackRef;
  readonly updateId?: string | null;
}) {
  const { organization, project, stack: name } = stack;
  const login = useMe()?.login ?? '';
  const subject = { login, organization, project, stack: name, updateId };
  const isWatched = useWatched().some((each) => isSameWatch(each, subject));
  const [problem, setProblem] = useState<string | null>(null);
  // Browsers have notifications only on pages that were loaded over TLS, or from this computer.
  if (!('Notification' in window) || !window.isSecureContext || login === '') return null;
  const toggle = async (): Promise<void> => {
    if (isWatched) return unwatch(subject);
    const isGranted = (await Notification.requestPermission()) === 'granted';
    const found = !isGranted
      ? watchButtonTexts.blocked
      : canNotify(`${project}/${name}`)
        ? null
        : watchButtonTexts.impossible;
    setProblem(found);
    if (found === null) watch({ ...subject, endedAt: null });
  };
  const label = isWatched
    ? watchButtonTexts.stopWatching
    : updateId === null
      ? watchButtonTexts.notifyOfUpdates
      : watchButtonTexts.notifyOfEnd;
  return (
    <>
      <Button
        kind="quiet"
        size="icon"
        aria-label={label}
        aria-pressed={isWatched}
        title={label}
        onClick={() => void toggle()}
      >
        {isWatched ? <BellRing size={17} /> : <Bell size={17} />}
      </Button>
      {problem === null ? null : <span role="alert">{problem}</span>}
    </>
  );
}

/** Browsers of phones have the constructor, but show no notifications for pages. */
function canNotify(subject: string): boolean {
  try {
    new Notification(subject, { body: watchButtonTexts.youWillBeNotified, tag: 'holdfast-watch' });
    return true;
  } catch {
    return false;
  }
}
