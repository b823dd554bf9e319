import { useNavigate } from '@tanstack/react-router';
import { ChevronDown, ChevronRight, CircleX, Lock, MessageSquareText, TriangleAlert } from 'lucide-react';
import { memo, useMemo, useRef, useState } from 'react';
import type { UpdateDetails } from '../app/contract.ts';
import { isSealed } from '../resources/json-tree.ts';
import { nameInUrn, shortType } from '../resources/resource-name.ts';
import { Empty } from '../ui/empty.tsx';
import { ListSearch, ListSection, ListToggle } from '../ui/list-bar.tsx';
import { duration } from '../ui/relative-time.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { useWindowRows } from '../ui/window-rows.ts';
import { diffJson } from '../versions/json-diff.ts';
import { Colored } from './colored.tsx';
import { ErrorSummary } from './error-summary.tsx';
import { viewOperation } from './operations.ts';
import styles from './progress-tree.module.css';
import { listTreeRows, type TreeRow } from './tree-rows.ts';
import type { ResourceRow } from './update-progress.ts';
import type { UpdateSearch } from './update-search.ts';
import { isActive } from './update-status.ts';
import { type LiveProgress, useNowSeconds } from './use-update.ts';

const rowPixels = 36;

interface ProgressTreeProps {
  readonly live: LiveProgress;
  readonly update: UpdateDetails;
  readonly search: UpdateSearch;
}

/** The CLI's tree: resources below their parents, with what happens to each. */
export function ProgressTree({ live, search, update }: ProgressTreeProps) {
  const { feed, revision } = live;
  const { progress } = feed;
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const showUnchanged = search.all === '1';
  const text = search.text ?? '';
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree is changed in place; its revision says when.
  const rows = useMemo(
    () => listTreeRows(progress, { showUnchanged, text, collapsed }),
    [progress, revision, showUnchanged, text, collapsed],
  );
  const now = useNowSeconds(isActive(update) && progress.runningCount > 0);
  const isLoading = !feed.isCaughtUp && rows.length === 0 && live.error === null;
  return (
    <div className={styles['progress']}>
      <ErrorSummary progress={progress} revision={revision} />
      <ListSection
        label="Resources of the update"
        bar={<Filter search={search} />}
        facts={countText(progress.rows.size, rows.length)}
      >
        {isLoading ? <TreeSkeleton /> : null}
        {!isLoading && rows.length === 0 ? <NoRows search={search} update={update} /> : null}
        {rows.length > 0 ? (
          <Rows
            rows={rows}
            opened={opened}
            isPreview={update.dryRun}
            now={now}
            isActive={isActive(update)}
            onCollapse={(urn) => setCollapsed((before) => toggle(before, urn))}
            onOpen={(urn) => setOpened((before) => toggle(before, urn))}
          />
        ) : null}
      </ListSection>
    </div>
  );
}

function countText(count: number, shown: number): string {
  return count === shown ? `${count} resources` : `${shown} of ${count} resources`;
}

function toggle(set: ReadonlySet<string>, item: string): ReadonlySet<string> {
  const changed = new Set(set);
  if (!changed.delete(item)) changed.add(item);
  return changed;
}

function Filter({ search }: { readonly search: UpdateSearch }) {
  const navigate = useNavigate();
  const change = (changes: Partial<UpdateSearch>): void =>
    void navigate({ to: '.', search: { ...search, ...changes }, replace: true, resetScroll: false });
  return (
    <>
      <ListSearch
        label="Filter resources by name or type"
        placeholder="Filter by name or type"
        value={search.text ?? ''}
        onText={(text) => change({ text: text || undefined })}
      />
      <ListToggle isOn={search.all === '1'} onChange={(isOn) => change({ all: isOn ? '1' : undefined })}>
        Unchanged resources
      </ListToggle>
    </>
  );
}

interface RowsProps {
  readonly rows: readonly TreeRow[];
  readonly opened: ReadonlySet<string>;
  readonly isPreview: boolean;
  readonly isActive: boolean;
  readonly now: number;
  readonly onCollapse: (urn: string) => void;
  readonly onOpen: (urn: string) => void;
}

function Rows({ rows, ...shared }: RowsProps) {
  const list = useRef<HTMLOListElement>(null);
  const shown = useWindowRows({ items: rows, keyOf: urnOf, list, rowPx: rowPixels });
  return (
    <ol ref={list} className={styles['rows']} aria-label="Resources" style={{ height: shown.heightPx }}>
      {shown.rows.map(({ index, item: tree, key, offsetPx }) => (
        <li
          key={key}
          ref={shown.measure}
          data-index={index}
          className={styles['place']}
          style={{ transform: `translateY(${offsetPx}px)` }}
          aria-posinset={index + 1}
          aria-setsize={rows.length}
        >
          <Row
            {...shared}
            tree={tree}
            status={tree.row.status}
            isOpen={shared.opened.has(tree.row.urn)}
            messageCount={tree.row.diagnostics.length}
          />
        </li>
      ))}
    </ol>
  );
}

function urnOf({ row }: TreeRow): string {
  return row.urn;
}

interface RowProps extends Omit<RowsProps, 'rows' | 'opened'> {
  readonly tree: TreeRow;
  readonly isOpen: boolean;
  readonly status: string;
  readonly messageCount: number;
}

function Row({ isOpen, isPreview, messageCount, now, onCollapse, onOpen, tree, ...rest }: RowProps) {
  const { row, depth, guides, isLast } = tree;
  const operation = viewOperation(row.op);
  const name = nameInUrn(row.urn);
  return (
    <>
      <div className={`${styles['row']} ${styles[row.status]} ${styles[`${operation.tone}Row`]}`}>
        <div className={styles['resource']} title={row.urn}>
          {depth > 0 ? <Guides guides={guides} isLast={isLast} /> : null}
          {tree.hasChildren ? (
            <button
              type="button"
              className={styles['chevron']}
              aria-expanded={!tree.isCollapsed}
              aria-label={tree.isCollapsed ? `Show what is in ${name}` : `Hide what is in ${name}`}
              onClick={() => onCollapse(row.urn)}
            >
              {tree.isCollapsed ? <ChevronRight size={14} /> : <ChevronDown size={14} />}
            </button>
          ) : (
            <span className={styles['leaf']} />
          )}
          <span className={styles['sign']} aria-hidden="true">
            {operation.sign}
          </span>
          <span className={styles['name']}>{name}</span>
          <span className={styles['type']}>{shortType(row.type)}</span>
          <span className="unseen">, level {depth + 1}</span>
          {row.isProtected ? <Lock size={12} className={styles['lock']} aria-label="protected" /> : null}
        </div>
        <div className={styles['info']}>
          <Info row={row} messageCount={messageCount} isOpen={isOpen} onOpen={() => onOpen(row.urn)} />
        </div>
        <div className={styles['state']}>
          <State row={row} isPreview={isPreview} isActive={rest.isActive} now={now} />
        </div>
      </div>
      {isOpen ? <Opened row={row} /> : null}
    </>
  );
}

const Guides = memo(function Guides({
  guides,
  isLast,
}: {
  readonly guides: readonly boolean[];
  readonly isLast: boolean;
}) {
  return (
    <span className={styles['guides']} aria-hidden="true">
      {guides.map((goesOn, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the level is what identifies a line.
        <span key={at} className={goesOn ? styles['line'] : styles['gap']} />
      ))}
      <span className={isLast ? styles['corner'] : styles['branch']} />
    </span>
  );
});

/** What is worth saying about a resource in one line. */
function Info({
  isOpen,
  messageCount,
  onOpen,
  row,
}: {
  readonly row: ResourceRow;
  readonly messageCount: number;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}) {
  if (row.status === 'running' && row.activity !== null) return <Colored text={row.activity} />;
  if (messageCount > 0) {
    const Icon = row.worst === 'error' ? CircleX : row.worst === 'warning' ? TriangleAlert : MessageSquareText;
    return (
      <button
        type="button"
        className={`${styles['messages']} ${styles[row.worst ?? 'info']}`}
        aria-expanded={isOpen}
        onClick={onOpen}
      >
        <Icon size={14} aria-hidden="true" />
        <span className={styles['messageText']}>{messageCount === 1 ? '1 message' : `${messageCount} messages`}</span>
      </button>
    );
  }
  if (row.diffs.length > 0) {
    return (
      <button
        type="button"
        className={styles['diffs']}
        title={row.diffs.join(', ')}
        aria-expanded={isOpen}
        onClick={onOpen}
      >
        {row.diffs.join(', ')}
      </button>
    );
  }
  return null;
}

function State({
  isActive: isLive,
  isPreview,
  now,
  row,
}: {
  readonly row: ResourceRow;
  readonly isPreview: boolean;
  readonly isActive: boolean;
  readonly now: number;
}) {
  const operation = viewOperation(row.op);
  if (row.status === 'known') return null;
  if (row.status === 'failed')
    return <span className={styles['word']}>{isPreview ? 'failed' : `${operation.running} failed`}</span>;
  if (row.status === 'running') {
    if (!isLive) return <span className={styles['word']}>{isPreview ? operation.planned : 'interrupted'}</span>;
    const isStack = row.type === 'pulumi:pulumi:Stack';
    return (
      <>
        <span className={styles['word']}>{isStack ? 'running' : operation.running}</span>
        <span className={styles['took']}>{duration(now - (row.startedAt ?? now))}</span>
      </>
    );
  }
  const took = (row.endedAt ?? 0) - (row.startedAt ?? row.endedAt ?? 0);
  return (
    <>
      <span className={styles['word']}>{isPreview ? operation.planned : operation.done}</span>
      <span className={styles['took']}>{row.op === 'same' || isPreview ? '' : took < 1 ? '<1 s' : duration(took)}</span>
    </>
  );
}

/** What was said about a resource, and which of its inputs a step changes. */
function Opened({ row }: { readonly row: ResourceRow }) {
  const step = row.lastStep;
  const { changes, isCut } = diffJson(step?.old?.inputs ?? {}, step?.new?.inputs ?? {}, maxChanges);
  const isChange = step?.old?.inputs !== undefined && step.new?.inputs !== undefined;
  return (
    <ul className={styles['opened']}>
      {row.diagnostics.map(({ message, sequence, severity }) => (
        <li key={sequence} className={styles[severity]}>
          <Colored text={message.trimEnd()} />
        </li>
      ))}
      {isChange
        ? changes.map(({ after, before, kind, path }) => (
            <li key={path} className={styles[kind]}>
              <span className={styles['path']}>{path}</span> {kind === 'added' ? '' : show(before)}
              {kind === 'changed' ? ' → ' : kind === 'removed' ? ' removed' : ''}
              {kind === 'removed' ? '' : show(after)}
            </li>
          ))
        : null}
      {isChange && isCut ? <li>More inputs change.</li> : null}
    </ul>
  );
}

const maxChanges = 50;
const maxValueCharacters = 300;

function show(value: unknown): string {
  const text = isSealed(value) ? '[secret]' : JSON.stringify(value);
  return text.length > maxValueCharacters ? `${text.slice(0, maxValueCharacters)}…` : text;
}

function NoRows({ search, update }: { readonly search: UpdateSearch; readonly update: UpdateDetails }) {
  if (search.text !== undefined) {
    return (
      <Empty title="No resource matches">
        <p>Nothing in this update has “{search.text}” in its name or type.</p>
      </Empty>
    );
  }
  if (isActive(update)) {
    return (
      <Empty title={update.status === 'running' ? 'Nothing has happened yet' : 'It waits for its turn'}>
        <p>Resources appear here as soon as the CLI reports the first step.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No steps were recorded">
      <p>Imports and renames have none, and neither do updates that ended before their first step.</p>
    </Empty>
  );
}

function TreeSkeleton() {
  return (
    <div className={styles['skeleton']} aria-busy="true">
      {[0, 1, 1, 2, 2, 1, 1].map((depth, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: bars in a fixed order.
        <div key={at} style={{ paddingLeft: depth * 20 }}>
          <Skeleton width={240 - depth * 30} />
        </div>
      ))}
    </div>
  );
}
