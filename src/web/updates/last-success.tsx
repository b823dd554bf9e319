import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ofVersions } from '../platform/app/of-versions.ts';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { stopsUnread, trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { Time } from '../platform/ui/time.tsx';
import { CommitLink } from './commit-link.tsx';
import styles from './error-summary.module.css';
import { describeProviderChange, providerChanges, providerTypes } from './provider-changes.ts';
import { lastSuccessTexts } from './texts.tsx';
import { viewKind } from './update-status.ts';

/** Maximum number of a stack's updates to search. */
const maxListed = 200;
const maxKeys = 10;

/** The last successful update before a failed one. Null while it is loading, and if there is none. */
export function useLastSuccess(stack: StackRef, update: UpdateDetails): UpdateDetails | null {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const isWanted = update.status === 'failed';
  const { data: list } = useQuery(
    trpc.updates.list.queryOptions({ ...ref, beforeId: update.updateId, limit: maxListed }, { enabled: isWanted }),
  );
  const found = list?.items.find(({ status }) => status === 'succeeded');
  const updateId = found?.updateId ?? '';
  const { data } = useQuery(
    trpc.updates.get.queryOptions({ ...ref, updateId }, { enabled: isWanted && found !== undefined }),
  );
  return data ?? null;
}

/** Loaded on request, because the server reads both states completely. */
function Providers({
  from,
  ids,
  stack,
  to,
}: {
  readonly stack: StackRef;
  readonly from: number;
  readonly to: number;
  readonly ids: readonly string[];
}) {
  const { organization, project, stack: name } = stack;
  const [isAsked, setIsAsked] = useState(false);
  const { data, isError } = useQuery(
    trpc.versions.diff.queryOptions(
      { ...{ organization, project, stack: name, from, to }, ...{ typePrefix: providerTypes, limit: maxListed } },
      { ...stopsUnread, enabled: isAsked, retry: false, ...ofVersions(...ids) },
    ),
  );
  if (!isAsked) {
    return (
      <li>
        <Button size="small" onClick={() => setIsAsked(true)}>
          {lastSuccessTexts.compareProviderVersions}
        </Button>
      </li>
    );
  }
  if (data === undefined) {
    return <li>{isError ? lastSuccessTexts.notCompared : lastSuccessTexts.comparing}</li>;
  }
  const changes = providerChanges(data.items);
  return changes.length === 0 ? (
    <li>{lastSuccessTexts.sameProviderVersions}</li>
  ) : (
    changes.map((change) => <li key={change.name}>{describeProviderChange(change)}</li>)
  );
}

/** Keys of the configuration whose values differ; of secrets, only additions and removals are known. Null: unknown. */
function changedKeys(before: UpdateDetails['config'], after: UpdateDetails['config']): string[] | null {
  if (before === null || after === null) return null;
  const values = (config: NonNullable<UpdateDetails['config']>) =>
    new Map(config.map(({ key, value }) => [key, value] as const));
  const [old, now] = [values(before), values(after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter(
    (key) => old.has(key) !== now.has(key) || old.get(key) !== now.get(key),
  );
}

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
  const cli = [success, update].map(({ environment }) => environment?.['pulumi.version'] ?? null);
  return (
    <div className={styles['success']}>
      <p>
        {lastSuccessTexts.lastSuccess(
          success.version === null ? (
            viewKind(success)
          ) : (
            <Link
              to="/$organization/$project/$stack/updates/$version"
              params={{ ...stack, version: String(success.version) }}
            >
              {viewKind(success)} {success.version}
            </Link>
          ),
          <span className={styles['type']}>
            <Time at={success.createdAt} />
          </span>,
        )}
      </p>
      <ul className={styles['changes']} aria-label={lastSuccessTexts.label}>
        {update.commit === null || success.commit === update.commit ? null : (
          <li>
            {lastSuccessTexts.commit(
              success.commit === null ? null : <CommitLink commit={success.commit} stack={stack} />,
              <CommitLink commit={update.commit} stack={stack} />,
            )}
          </li>
        )}
        {update.commit !== null && success.commit === update.commit ? <li>{lastSuccessTexts.sameCommit}</li> : null}
        {success.branch === update.branch || update.branch === null ? null : (
          <li>{lastSuccessTexts.branch(success.branch, update.branch)}</li>
        )}
        {cli[0] === cli[1] || cli[0] === null || cli[1] === null ? null : (
          <li>{lastSuccessTexts.pulumi(cli[0], cli[1])}</li>
        )}
        {success.version === null || update.version === null || success.version === update.version ? null : (
          <Providers
            key={`${success.version} ${update.version}`}
            ids={[success.updateId, update.updateId]}
            stack={stack}
            from={success.version}
            to={update.version}
          />
        )}
        {keys === null || keys.length === 0 ? null : (
          <li>
            {lastSuccessTexts.configuration(
              keys.slice(0, maxKeys).map((key, at) => (
                <span key={key}>
                  {at === 0 ? '' : ', '}
                  <code>{key}</code>
                </span>
              )),
              keys.length - maxKeys,
            )}
          </li>
        )}
        {success.version === null || update.version === null || success.version === update.version ? null : (
          <li>
            <Link
              to="/$organization/$project/$stack"
              params={stack}
              search={{ tab: 'versions', from: success.version, to: update.version }}
            >
              {lastSuccessTexts.compareResources}
            </Link>
          </li>
        )}
      </ul>
    </div>
  );
}
