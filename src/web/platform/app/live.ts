import { focusManager } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { repeatAfter } from './api-error.ts';
import { LiveFollowers, type LiveMessage } from './live-followers.ts';
import { liveClient } from './trpc.ts';
import { checkReached } from './watch-server.ts';

const followers = new LiveFollowers((topics, { onConnected, onCut, onEnd, onMessage }) => {
  const { unsubscribe } = liveClient.live.subscribe.subscribe(
    { topics },
    {
      onData: ({ data }) => onMessage(data),
      onError: (error) => onEnd(repeatAfter(error)),
      onComplete: () => onEnd(0),
      // The browser reconnects by itself. There may be no other request to the server for a long time.
      onConnectionStateChange: ({ error, state }) => {
        if (state === 'pending') onConnected();
        if (state !== 'connecting' || error === null) return;
        onCut();
        void checkReached();
      },
    },
  );
  return unsubscribe;
});

let isNotifying = false;

function checkNeeded(): void {
  followers.setNeeded(isNotifying || document.visibilityState !== 'hidden');
}

document.addEventListener('visibilitychange', checkNeeded);
checkNeeded();

// When the tab is shown, the new stream makes pages reload their data. All other data is read after that, so that nothing is read twice.
focusManager.setEventListener((onFocus) => {
  const onChange = (): void => followers.afterStart(onFocus);
  addEventListener('visibilitychange', onChange);
  return () => removeEventListener('visibilitychange', onChange);
});

/** Keeps the stream while the tab is hidden, in one tab of the browser, which notifies for all. Returns a function that ends this. */
export function keepNotified(): () => void {
  const left = new AbortController();
  const hold = async (): Promise<void> => {
    isNotifying = true;
    checkNeeded();
    await new Promise((resolve) => left.signal.addEventListener('abort', resolve));
    isNotifying = false;
    checkNeeded();
  };
  // Without TLS, browsers have neither locks nor notifications.
  navigator.locks?.request('holdfast.notifications', { signal: left.signal }, hold).catch(() => {});
  return () => left.abort();
}

/** Topics: `stack:acme/web/prod`, `update:<id>`, `organization:acme`. Returns whether the stream works; otherwise, pages poll. */
export function useLive(topic: string | null, onMessage: (message: LiveMessage) => void): boolean {
  const [isLive, setIsLive] = useState(false);
  const newest = useRef(onMessage);
  newest.current = onMessage;
  useEffect(() => {
    if (topic === null) return undefined;
    return followers.follow(topic, { onMessage: (message) => newest.current(message), onState: setIsLive });
  }, [topic]);
  return isLive;
}
