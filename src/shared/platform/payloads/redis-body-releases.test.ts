import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { RedisConnection } from '../redis/redis.ts';
import { BodyReleases, type CompleteBody } from './redis-body-releases.ts';

describe('releases of bodies', () => {
  const budget = { leave: async () => {} };
  const bodyOf = (key: string): CompleteBody => ({ key, chunks: 1, bytes: 1, budget });
  let redis: EventEmitter;
  let removed: string[];
  let remove: (body: CompleteBody) => Promise<void>;
  let stored: Map<string, CompleteBody>;
  beforeEach(() => {
    redis = new EventEmitter();
    removed = [];
    stored = new Map();
    remove = async ({ key }) => void removed.push(key);
  });
  const open = (repeatMs: number, jobLifeMs = 60_000): BodyReleases =>
    new BodyReleases({
      redis: redis as RedisConnection,
      find: async (key) => stored.get(key) ?? null,
      remove: (body) => remove(body),
      repeatMs,
      jobLifeMs,
    });

  it('happen once while the connection lasts, and are forgotten in time', async () => {
    const releases = open(0);
    await releases.add('one', bodyOf('one'));
    expect(releases.size).toBe(1);
    await releases.repeat();
    expect([removed, releases.size]).toEqual([['one'], 0]);
    redis.emit('close');
    await releases.repeat();
    expect(removed).toEqual(['one']);
  });

  it('are repeated once for each lost connection', async () => {
    const releases = open(60_000);
    await Promise.all(['one', 'two'].map((key) => releases.add(key, bodyOf(key))));
    for (let lost = 1; lost <= 2; lost++) {
      redis.emit('close');
      for (let time = 0; time < 2; time++) await releases.repeat();
      expect(removed).toHaveLength(2 + 2 * lost);
    }
    releases.close();
    redis.emit('close');
    await releases.repeat();
    expect(removed).toHaveLength(6);
  });

  it('are repeated until they succeed, for as long as Redis may have the body', async () => {
    const releases = open(0);
    const brief = open(0, 0);
    remove = () => Promise.reject(new Error('away'));
    await expect(releases.add('one', bodyOf('one'))).rejects.toThrow('away');
    await expect(brief.add('one', bodyOf('one'))).rejects.toThrow('away');
    await Promise.all([releases.repeat(), brief.repeat()]);
    expect([releases.size, brief.size]).toEqual([1, 0]);
    remove = async ({ key }) => void removed.push(key);
    await releases.repeat();
    expect(removed).toEqual(['one']);
    await releases.repeat();
    expect([removed, releases.size]).toEqual([['one'], 0]);
  });

  it('are repeated if the connection was lost before they were confirmed', async () => {
    const releases = open(60_000);
    const { promise, resolve } = Promise.withResolvers<void>();
    remove = () => promise;
    const adding = releases.add('one', bodyOf('one'));
    redis.emit('close');
    resolve();
    await adding;
    remove = async ({ key }) => void removed.push(key);
    await releases.repeat();
    expect(removed).toEqual(['one']);
  });

  it('find a body that reappears, and remember its size when it does not', async () => {
    const releases = open(60_000);
    await releases.add('gone', null);
    stored.set('known', bodyOf('known'));
    await releases.add('known', null);
    stored.clear();
    stored.set('gone', bodyOf('gone'));
    redis.emit('close');
    await releases.repeat();
    expect(removed).toEqual(['known', 'known', 'gone']);
  });

  it('are repeated a few at a time', async () => {
    const releases = open(60_000);
    await Promise.all(Array.from({ length: 500 }, (_, at) => releases.add(`${at}`, bodyOf(`${at}`))));
    let [running, most] = [0, 0];
    remove = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
    };
    redis.emit('close');
    await releases.repeat();
    expect(most).toBe(50);
  });
});
