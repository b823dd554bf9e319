import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Pin, PinOff, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackDetails, StackRef, VersionItem } from '../../platform/app/procedure-types.ts';
import type { StackPageSearch } from '../../platform/app/stack-search.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';

import { Empty } from '../../platform/ui/empty.tsx';
import { RowButton } from '../../platform/ui/row-button.tsx';
import { Segments } from '../../platform/ui/segments.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { ChangeBar } from '../../updates/change-bar.tsx';
import { viewKind } from '../../updates/update-status.ts';
import { StateViewer } from '../state-viewer.tsx';
import { versionTexts } from '../texts.tsx';
import { RestoreDialog } from './restore-dialog.tsx';
import { StackCompare } from './stack-compare.tsx';
import { VersionDiff } from './version-diff.tsx';
import styles from './version-list.module.css';

const pageSize = 50;

const views = [
  { value: undefined, label: versionTexts.differences },
  { value: 'state', label: versionTexts.state },
  { value: 'stacks', label: versionTexts.compareStacks },
] as const;

interface VersionListProps {
  readonly stack: StackRef;
  readonly details: StackDetails;
  readonly search: StackPageSearch;
}

export function VersionList({ details, search, stack }: VersionListProps) {
  const navigate = useNavigate();
  const [isRestoring, setIsRestoring] = useState(false);
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.versions.list.infiniteQueryOptions(
      { organization, project, stack: name, limit: pageSize },
      { getNextPageParam: (page) => page.next },
    ),
  );
  // By default, the version that was the newest when the page was opened: a later one must not replace it under the pointer.
  const [first, setFirst] = useState<number | undefined>();
  const newest = query.data?.pages[0]?.items[0]?.version;
  if (first === undefined && newest !== undefined && !query.isFetching) setFirst(newest);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="60%" />;
  const versions = query.data.pages.flatMap(({ items }) => items);
  if (newest === undefined) {
    return (
      <Empty title={versionTexts.none}>
        <p>{versionTexts.noneHint}</p>
      </Empty>
    );
  }
  const to = search.to ?? first ?? newest;
  const from = search.from ?? Math.max(0, to - 1);
  const change = (chosen: Partial<StackPageSearch>): void =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...chosen }), replace: true, resetScroll: false });
  const choose = (chosen: { readonly from: number; readonly to: number }): void => change(chosen);
  const find = (number: number) => versions.find(({ version }) => version === number);
  // Unlisted versions are distinguished from versions of a former stack with this name.
  const idOf = (number: number): string => find(number)?.updateId ?? details.createdAt;
  const chosen = find(to);
  const mayRestore =
    chosen?.isStateDeleted !== true && to < newest && details.active === null && details.permissions.includes('write');
  const shapes = (
    <Segments label={versionTexts.view} options={views} value={search.show} onChange={(show) => change({ show })} />
  );
  if (search.show === 'stacks')
    return (
      <div className={styles['whole']}>
        {shapes}
        <StackCompare stack={stack} search={search} />
      </div>
    );
  return (
    <div className={styles['whole']}>
      {shapes}
      {isRestoring ? (
        <RestoreDialog
          stack={{ organization, project, stack: name }}
          version={to}
          headVersion={newest}
          idOf={idOf}
          onClose={() => setIsRestoring(false)}
          onRestored={(before, restored) => {
            setIsRestoring(false);
            choose({ from: before, to: restored });
          }}
        />
      ) : null}
      <div className={styles['split']}>
        <section className={styles['versions']} aria-label={versionTexts.versions}>
          <ol className={styles['rows']}>
            {versions.map((version) => (
              <li key={version.version}>
                <VersionRow
                  version={version}
                  isChosen={version.version === to}
                  onChoose={() => choose({ from: Math.max(0, version.version - 1), to: version.version })}
                />
              </li>
            ))}
          </ol>
          {query.hasNextPage ? (
            <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              {versionTexts.olderVersions}
            </Button>
          ) : null}
        </section>
        <section
          className={styles['diff']}
          aria-label={search.show === 'state' ? versionTexts.version(to) : versionTexts.differencesOf(from, to)}
        >
          <header className={styles['head']}>
            <h2>
              {search.show === 'state'
                ? versionTexts.version(to)
                : versionTexts.fromTo(
                    <Choice
                      label={versionTexts.fromVersion}
                      value={from}
                      versions={[...versions.map((each) => each.version), 0]}
                      onChange={(value) => choose({ from: value, to })}
                    />,
                    <Choice
                      label={versionTexts.toVersion}
                      value={to}
                      versions={versions.map((each) => each.version)}
                      onChange={(value) => choose({ from, to: value })}
                    />,
                  )}
            </h2>
            <div className={styles['actions']}>
              <Link to="/$organization/$project/$stack/updates/$version" params={{ ...stack, version: String(to) }}>
                {versionTexts.viewUpdate}
              </Link>
              {chosen && !chosen.isStateDeleted && details.permissions.includes('write') ? (
                <PinButton key={chosen.version} stack={stack} version={chosen} />
              ) : null}
              {mayRestore ? (
                <Button size="small" onClick={() => setIsRestoring(true)}>
                  <RotateCcw size={14} aria-hidden="true" />
                  {versionTexts.restore(to)}
                </Button>
              ) : null}
            </div>
          </header>
          {search.show === 'state' ? (
            <StateViewer key={`${to} ${idOf(to)}`} stack={stack} version={to} id={idOf(to)} />
          ) : (
            <VersionDiff key={`${from} ${to}`} stack={stack} from={from} to={to} idOf={idOf} />
          )}
        </section>
      </div>
    </div>
  );
}

function Choice({
  label,
  onChange,
  value,
  versions,
}: {
  readonly label: string;
  readonly value: number;
  readonly versions: readonly number[];
  readonly onChange: (version: number) => void;
}) {
  const known = versions.includes(value) ? versions : [value, ...versions];
  return (
    <select
      className={styles['choice']}
      aria-label={label}
      value={value}
      onChange={(event) => onChange(Number(event.target.value))}
    >
      {known.map((version) => (
        <option key={version} value={version}>
          {version === 0 ? versionTexts.empty : versionTexts.atVersion(version)}
        </option>
      ))}
    </select>
  );
}

function VersionRow({
  isChosen,
  onChoose,
  version,
}: {
  readonly version: VersionItem;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}) {
  const { changed } = version;
  const changes = changed && {
    ...{ create: changed.created, update: changed.updated, delete: changed.deleted, replace: changed.replaced },
  };
  return (
    <RowButton className={styles['row']} aria-current={isChosen ? 'true' : undefined} onClick={onChoose}>
      <span className={styles['number']}>{version.version}</span>
      <span className={styles['what']}>
        <span className={styles['kind']}>
          {viewKind(version)}
          {version.message ? <span className={styles['message']}> {version.message}</span> : null}
        </span>
        <span className={styles['when']}>
          <Time at={version.at} />
          {version.by === null ? '' : versionTexts.by(version.by)}
          {version.isStateDeleted ? versionTexts.stateDeleted : ''}
          {version.pinnedBy === null ? '' : versionTexts.pinned}
          {version.resourceCount === null ? '' : versionTexts.resources(version.resourceCount)}
        </span>
      </span>
      <ChangeBar changes={changes} />
    </RowButton>
  );
}

/** Retention keeps the state of a pinned version. */
function PinButton({ stack, version }: { readonly stack: StackRef; readonly version: VersionItem }) {
  const { organization, project, stack: name } = stack;
  const refresh = thenRefresh();
  const pin = useMutation(trpc.retention.pin.mutationOptions(refresh));
  const unpin = useMutation(trpc.retention.unpin.mutationOptions(refresh));
  const isPinned = version.pinnedBy !== null;
  const change = isPinned ? unpin : pin;
  return (
    <>
      <Button
        size="small"
        disabled={change.isPending}
        title={isPinned ? versionTexts.pinnedBy(version.pinnedBy) : versionTexts.pinWhy}
        onClick={() => change.mutate({ organization, project, stack: name, version: version.version })}
      >
        {isPinned ? <PinOff size={14} aria-hidden="true" /> : <Pin size={14} aria-hidden="true" />}
        {isPinned ? versionTexts.unpin : versionTexts.pin}
      </Button>
      {change.error === null ? null : <span role="alert">{change.error.message}</span>}
    </>
  );
}
