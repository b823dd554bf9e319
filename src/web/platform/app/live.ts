import { useEffect, useRef, useState } from 'react';
import { repeatAfter } from './api-error.ts';
import { checkReached, liveClient } from './trpc.ts';

/** A notification to a page: something has changed, and the page reads its data again. */
export interface LiveMessage {
  readonly topic: string | null;
  readonly kind: string;
  readonly updateId?: string | undefined;
}

/** The server accepts at most this many topics. */
const maxTopics = 10;
/** On navigation, topics come and go together: one new stream covers both changes. */
const settleMs = 50;
/** A stream ends when the viewer's rights change, and may be refused. */
const retryMs = 5_000;

interface Follower {
  readonly onMessage: (message: LiveMessage) => void;
  readonly onState: (isLive: boolean) => void;
}

/** Of this tab: all its pages share one stream. */
const followers = new Map<string, Set<Follower>>();
let stream: { readonly topics: string; readonly stop: () => void } | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

function follow(topic: string, follower: Follower): () => void {
  const others = followers.get(topic) ?? new Set();
  followers.set(topic, others.add(follower));
  restart(settleMs);
  return () => {
    others.delete(follower);
    if (others.size === 0) followers.delete(topic);
    restart(settleMs);
  };
}

function restart(afterMs: number): void {
  clearTimeout(timer);
  timer = setTimeout(open, afterMs);
}

function open(): void {
  const topics = [...followers.keys()].sort().slice(-maxTopics);
  const key = topics.join('\n');
  if (stream?.topics === key) return;
  stream?.stop();
  stream = null;
  publishState(false);
  if (topics.length === 0) return;
  const again = (error?: unknown): void => {
    if (stream?.topics !== key) return;
    stream = null;
    publishState(false);
    restart(Math.max(retryMs, repeatAfter(error) || 0));
  };
  const { unsubscribe } = liveClient.live.subscribe.subscribe(
    { topics },
    {
      onData: ({ data }) => receive(data),
      onError: again,
      onComplete: () => again(),
      // The browser connects again by itself. Nothing else may ask the server for a long time.
      onConnectionStateChange: ({ error, state }) => {
        if (state === 'connecting' && error !== null) void checkReached();
      },
    },
  );
  stream = { topics: key, stop: unsubscribe };
}

function receive(message: LiveMessage): void {
  if (message.kind === 'position') return;
  publishState(true);
  for (const [topic, group] of followers) {
    if (message.topic !== null && message.topic !== topic) continue;
    for (const { onMessage } of group) onMessage(message);
  }
}

function publishState(isLive: boolean): void {
  for (const group of followers.values()) for (const { onState } of group) onState(isLive);
}

/**
 * Calls `onMessage` when a topic changes: `stack:acme/web/prod`, `update:<id>`, `organization:acme`. Returns whether the
 * stream works; without a stream, pages poll.
 */
export function useLive(topic: string | null, onMessage: (message: LiveMessage) => void): boolean {
  const [isLive, setIsLive] = useState(false);
  const newest = useRef(onMessage);
  newest.current = onMessage;
  useEffect(() => {
    if (topic === null) return undefined;
    return follow(topic, { onMessage: (message) => newest.current(message), onState: setIsLive });
  }, [topic]);
  return isLive;
}
