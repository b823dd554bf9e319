import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/contract.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Time } from '../platform/ui/time.tsx';
import { CommitLink } from './commit-link.tsx';
import styles from './error-summary.module.css';
import { type ProviderChange, providerChanges, providerTypes } from './provider-changes.ts';
import { viewKind } from './update-status.ts';

/** How many updates of a stack are looked through. */
const maxListed = 200;
const maxKeys = 10;

/** The last successful update before a failed one. Null while it is loading, and if there is none. */
export function useLastSuccess(stack: StackRef, update: UpdateDetails): UpdateDetails | null {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const isWanted = update.status === 'failed';
  const { data: list } = useQuery(trpc.updates.list.queryOptions({ ...ref, limit: maxListed }, { enabled: isWanted }));
  const found = list?.items.find(
    ({ createdAt, status, updateId }) =>
      status === 'succeeded' && updateId !== update.updateId && createdAt < update.createdAt,
  );
  const updateId = found?.updateId ?? '';
  const { data } = useQuery(
    trpc.updates.get.queryOptions({ ...ref, updateId }, { enabled: isWanted && found !== undefined }),
  );
  return data ?? null;
}

/** Versions of providers that differ between the states of two updates. Empty while they are loading, and if a state is gone. */
function useProviderChanges(stack: StackRef, from: number | null, to: number | null): readonly ProviderChange[] {
  const { organization, project, stack: name } = stack;
  const { data } = useQuery(
    trpc.versions.diff.queryOptions(
      {
        ...{ organization, project, stack: name, from: from ?? 0, to: to ?? 0 },
        ...{ typePrefix: providerTypes, limit: maxListed },
      },
      // Versions do not change.
      { enabled: from !== null && to !== null && from !== to, retry: false, staleTime: Number.POSITIVE_INFINITY },
    ),
  );
  return useMemo(() => providerChanges(data?.items ?? []), [data]);
}

/** Keys of the configuration whose values differ; of secrets, only that they came or went is known. Null: unknown. */
function changedKeys(before: UpdateDetails['config'], after: UpdateDetails['config']): string[] | null {
  if (before === null || after === null) return null;
  const values = (config: NonNullable<UpdateDetails['config']>) =>
    new Map(config.map(({ key, value }) => [key, value] as const));
  const [old, now] = [values(before), values(after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter(
    (key) => old.has(key) !== now.has(key) || old.get(key) !== now.get(key),
  );
}

/** What differs from the last successful update: commits, branches, configuration, and versions of the CLI and of providers. */
export function LastSuccess({
  success,
  stack,
  update,
}: {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly success: UpdateDetails;
}) {
  const keys = changedKeys(success.config, update.config);
  const providers = useProviderChanges(stack, success.version, update.version);
  const cli = [success, update].map(({ environment }) => environment?.['pulumi.version'] ?? null);
  return (
    <div className={styles['success']}>
      <p>
        Last success:{' '}
        {success.version === null ? (
          viewKind(success)
        ) : (
          <Link
            to="/$organization/$project/$stack/updates/$version"
            params={{ ...stack, version: String(success.version) }}
          >
            {viewKind(success)} {success.version}
          </Link>
        )}{' '}
        <span className={styles['type']}>
          <Time at={success.createdAt} />
        </span>
      </p>
      <ul className={styles['changes']} aria-label="Changed since the last success">
        {update.commit === null || success.commit === update.commit ? null : (
          <li>
            Commit {success.commit === null ? 'unknown' : <CommitLink commit={success.commit} stack={stack} />}
            {' → '}
            <CommitLink commit={update.commit} stack={stack} />
          </li>
        )}
        {update.commit !== null && success.commit === update.commit ? <li>Same commit</li> : null}
        {success.branch === update.branch || update.branch === null ? null : (
          <li>
            Branch {success.branch === null ? 'unknown' : <code>{success.branch}</code>} → <code>{update.branch}</code>
          </li>
        )}
        {cli[0] === cli[1] || cli[0] === null || cli[1] === null ? null : (
          <li>
            Pulumi <code>{cli[0]}</code> → <code>{cli[1]}</code>
          </li>
        )}
        {providers.map(({ after, before, name }) => (
          <li key={name}>
            Provider {name} <code>{before.join(', ') || 'none'}</code> → <code>{after.join(', ') || 'none'}</code>
          </li>
        ))}
        {keys === null || keys.length === 0 ? null : (
          <li>
            Configuration{' '}
            {keys.slice(0, maxKeys).map((key, at) => (
              <span key={key}>
                {at === 0 ? '' : ', '}
                <code>{key}</code>
              </span>
            ))}
            {keys.length > maxKeys ? ` and ${keys.length - maxKeys} more` : ''}
          </li>
        )}
        {success.version === null || update.version === null || success.version === update.version ? null : (
          <li>
            <Link
              to="/$organization/$project/$stack"
              params={stack}
              search={{ tab: 'versions', from: success.version, to: update.version }}
            >
              Compare resources
            </Link>
          </li>
        )}
      </ul>
    </div>
  );
}
