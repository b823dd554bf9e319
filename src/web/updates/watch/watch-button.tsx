import { Bell, BellRing } from 'lucide-react';
import { useState } from 'react';
import type { StackRef } from '../../platform/app/contract.ts';
import { Button } from '../../platform/ui/button.tsx';
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
  const subject = { organization, project, stack: name, updateId };
  const isWatched = useWatched().some((each) => isSameWatch(each, subject));
  const [isBlocked, setIsBlocked] = useState(false);
  // Browsers have notifications only on pages that were loaded over TLS, or from this computer.
  if (!('Notification' in window) || !window.isSecureContext) return null;
  const toggle = async (): Promise<void> => {
    if (isWatched) return unwatch(subject);
    const isGranted = (await Notification.requestPermission()) === 'granted';
    setIsBlocked(!isGranted);
    if (isGranted) watch({ ...subject, endedAt: null });
  };
  const label = isWatched
    ? 'Stop watching'
    : updateId === null
      ? 'Notify me when an update ends'
      : 'Notify me when it ends';
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
      {isBlocked ? <span role="alert">The browser blocks notifications of this site.</span> : null}
    </>
  );
}
