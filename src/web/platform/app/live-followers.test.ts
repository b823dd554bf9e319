import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { LiveFollowers } from './live-followers.ts';

type Listener = Parameters<ConstructorParameters<typeof LiveFollowers>[0]>[1];

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

class Tab {
  readonly streams: { topics: string[]; listener: Listener; isOpen: boolean }[] = [];
  readonly live = new Map<string, boolean>();
  readonly kinds: string[] = [];
  readonly #followers = new LiveFollowers((topics, listener) => {
    const stream = { topics, listener, isOpen: true };
    this.streams.push(stream);
    return () => {
      stream.isOpen = false;
    };
  });

  follow(...topics: string[]): () => void {
    const ends = topics.map((topic) =>
      this.#followers.follow(topic, {
        onMessage: ({ kind }) => this.kinds.push(kind),
        onState: (isLive) => this.live.set(topic, isLive),
      }),
    );
    jest.advanceTimersByTime(1_000);
    return () => {
      for (const end of ends) end();
      jest.advanceTimersByTime(1_000);
    };
  }

  need(isNeeded: boolean): void {
    this.#followers.setNeeded(isNeeded);
  }

  /** All data is read when the tab is shown. */
  show(): void {
    this.need(true);
    this.#followers.afterStart(() => this.kinds.push('shown'));
  }

  get newest() {
    const stream = this.streams.at(-1);
    if (!stream) throw new Error('no stream');
    return stream;
  }

  begin(): void {
    this.newest.listener.onMessage({ topic: null, kind: 'ready' });
  }
}

test('followers of a topic beyond the limit are not told that it is live', () => {
  const tab = new Tab();
  const organizations = Array.from({ length: 11 }, (_, at) => `organization:${String(at).padStart(2, '0')}`);
  tab.follow(...organizations, 'stack:a/b/c');
  tab.begin();
  expect(tab.newest.topics).toHaveLength(10);
  expect([...tab.live].filter(([, isLive]) => isLive).map(([topic]) => topic)).toEqual(tab.newest.topics);
});

test('followers are told when the connection is cut, and when it is there again', () => {
  const tab = new Tab();
  tab.follow('stack:a/b/c');
  tab.newest.listener.onConnected();
  expect(tab.live.get('stack:a/b/c')).toBe(false);
  tab.begin();
  expect(tab.live.get('stack:a/b/c')).toBe(true);
  tab.newest.listener.onCut();
  expect(tab.live.get('stack:a/b/c')).toBe(false);
  tab.newest.listener.onConnected();
  expect(tab.live.get('stack:a/b/c')).toBe(true);
});

test('a stream that goes on after a cut is live, and only what happened meanwhile is passed on', () => {
  const tab = new Tab();
  tab.follow('stack:a/b/c');
  tab.begin();
  tab.newest.listener.onCut();
  tab.begin();
  expect(tab.live.get('stack:a/b/c')).toBe(true);
  tab.newest.listener.onMessage({ topic: null, kind: 'refetch' });
  expect(tab.kinds).toEqual(['ready', 'refetch']);
  tab.newest.listener.onEnd(0);
  jest.advanceTimersByTime(10_000);
  tab.begin();
  expect(tab.kinds).toEqual(['ready', 'refetch', 'ready']);
});

test('another follower of a topic of the stream is told that it is live', () => {
  const tab = new Tab();
  const leave = tab.follow('stack:a/b/c');
  tab.begin();
  tab.live.clear();
  tab.follow('stack:a/b/c');
  expect(tab.live.get('stack:a/b/c')).toBe(true);
  leave();
  expect(tab.streams).toHaveLength(1);
});

test('a stream that is refused again and again is opened more and more rarely, unless its topics change', () => {
  const tab = new Tab();
  tab.follow('stack:a/b/c', 'organization:a');
  for (let at = 0; at < 600; at++) {
    if (tab.newest.isOpen) {
      tab.newest.isOpen = false;
      tab.newest.listener.onEnd(false);
    }
    jest.advanceTimersByTime(1_000);
  }
  expect(tab.streams.length).toBeLessThan(9);
  tab.follow('update:1');
  expect(tab.newest.topics).toHaveLength(3);
  tab.newest.listener.onEnd(false);
  jest.advanceTimersByTime(6_000);
  const { length } = tab.streams;
  tab.begin();
  tab.newest.listener.onEnd(false);
  jest.advanceTimersByTime(6_000);
  expect(tab.streams).toHaveLength(length + 1);
});

test('a stream that ends while the server is away is opened again as soon as the server allows', () => {
  const tab = new Tab();
  tab.follow('stack:a/b/c');
  for (let at = 0; at < 300; at++) {
    if (tab.newest.isOpen) {
      tab.newest.isOpen = false;
      tab.newest.listener.onEnd(10_000);
    }
    jest.advanceTimersByTime(1_000);
  }
  const { length } = tab.streams;
  tab.newest.isOpen = false;
  tab.newest.listener.onEnd(10_000);
  jest.advanceTimersByTime(10_000);
  expect(tab.streams).toHaveLength(length + 1);
});

test('a stream that has ended is opened again later, and says nothing any more', () => {
  const tab = new Tab();
  tab.follow('stack:a/b/c');
  tab.begin();
  tab.newest.listener.onEnd(60_000);
  expect(tab.live.get('stack:a/b/c')).toBe(false);
  jest.advanceTimersByTime(59_000);
  expect(tab.streams).toHaveLength(1);
  jest.advanceTimersByTime(2_000);
  expect(tab.streams).toHaveLength(2);
  tab.streams[0]?.listener.onMessage({ topic: null, kind: 'ready' });
  expect(tab.live.get('stack:a/b/c')).toBe(false);
});

test('a tab that stays hidden has no stream, and reads again when it is shown', () => {
  const tab = new Tab();
  tab.follow('stack:a/b/c');
  tab.begin();
  tab.need(false);
  jest.advanceTimersByTime(5_000);
  tab.need(true);
  jest.advanceTimersByTime(60_000);
  expect([tab.streams.length, tab.newest.isOpen]).toEqual([1, true]);

  tab.need(false);
  jest.advanceTimersByTime(11_000);
  expect([tab.newest.isOpen, tab.live.get('stack:a/b/c')]).toEqual([false, false]);
  tab.follow('update:d');
  expect(tab.streams).toHaveLength(1);
  tab.need(true);
  jest.advanceTimersByTime(1_000);
  tab.begin();
  expect(tab.newest).toMatchObject({ isOpen: true, topics: ['stack:a/b/c', 'update:d'] });
  expect(tab.live.get('stack:a/b/c')).toBe(true);
  expect(tab.kinds).toEqual(['ready', 'ready', 'ready']);
});

test('a tab that is opened in the background has no stream before it is shown', () => {
  const tab = new Tab();
  tab.need(false);
  tab.follow('stack:a/b/c');
  jest.advanceTimersByTime(60_000);
  expect(tab.streams).toEqual([]);
});

test('a tab that is shown again reads its data when its new stream has begun, or soon if none does', () => {
  const tab = new Tab();
  tab.show();
  expect(tab.kinds).toEqual(['shown']);
  tab.follow('stack:a/b/c');
  tab.begin();
  tab.need(false);
  jest.advanceTimersByTime(5_000);
  tab.show();
  expect(tab.kinds).toEqual(['shown', 'ready', 'shown']);

  tab.kinds.length = 0;
  tab.need(false);
  jest.advanceTimersByTime(11_000);
  tab.show();
  jest.advanceTimersByTime(500);
  expect(tab.kinds).toEqual([]);
  tab.begin();
  jest.advanceTimersByTime(60_000);
  expect(tab.kinds).toEqual(['ready', 'shown']);

  tab.kinds.length = 0;
  tab.need(false);
  jest.advanceTimersByTime(11_000);
  tab.show();
  jest.advanceTimersByTime(5_000);
  expect(tab.kinds).toEqual(['shown']);
});
