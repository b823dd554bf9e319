import { ChevronDown, ChevronRight, CircleX, Lock, MessageSquareText, TriangleAlert } from 'lucide-react';
import { memo } from 'react';
import { PropertyDiff } from '../platform/app/property-diff.tsx';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { CutName } from '../platform/ui/cut-name.tsx';
import { diffJson } from '../platform/ui/json-diff.ts';
import { duration } from '../platform/ui/relative-time.ts';
import { Colored } from './colored.tsx';
import { viewOperation } from './operations.ts';
import styles from './progress-tree.module.css';
import { errorSummaryTexts, progressRowTexts } from './texts.tsx';
import type { TreeRow } from './tree-rows.ts';
import type { ResourceRow } from './update-progress.ts';

interface RowProps {
  readonly isPreview: boolean;
  readonly isActive: boolean;
  readonly now: number;
  readonly onCollapse: (urn: string) => void;
  readonly onOpen: (urn: string) => void;
  readonly tree: TreeRow;
  readonly isOpen: boolean;
}

export function ProgressRow({ isActive, isOpen, isPreview, now, onCollapse, onOpen, tree }: RowProps) {
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
              aria-label={tree.isCollapsed ? progressRowTexts.expand(name) : progressRowTexts.collapse(name)}
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
          <CutName text={name} className={styles['name']} />
          <span className={styles['type']}>{shortType(row.type)}</span>
          <span className="unseen">{progressRowTexts.level(depth + 1)}</span>
          {row.isProtected ? (
            <Lock size={12} className={styles['lock']} aria-label={progressRowTexts.protected} />
          ) : null}
        </div>
        <div className={styles['info']}>
          <Info row={row} isOpen={isOpen} onOpen={() => onOpen(row.urn)} />
        </div>
        <div className={styles['state']}>
          <State row={row} isPreview={isPreview} isActive={isActive} now={now} />
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

function Info({
  isOpen,
  onOpen,
  row,
}: {
  readonly row: ResourceRow;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}) {
  if (row.status === 'running' && row.activity !== null) return <Colored text={row.activity} />;
  const messageCount = row.diagnostics.length;
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
        <span className={styles['messageText']}>{progressRowTexts.messages(messageCount)}</span>
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
  if (row.status === 'running') {
    if (!isLive)
      return <span className={styles['word']}>{isPreview ? operation.planned : progressRowTexts.interrupted}</span>;
    const isStack = row.type === 'pulumi:pulumi:Stack';
    return (
      <>
        <span className={styles['word']}>{isStack ? progressRowTexts.running : operation.running}</span>
        <span className={styles['took']}>{duration(now - (row.startedAt ?? now))}</span>
      </>
    );
  }
  const took = (row.endedAt ?? 0) - (row.startedAt ?? row.endedAt ?? 0);
  const failed = isPreview ? 'failed' : progressRowTexts.operationFailed(operation.running);
  const done = isPreview ? operation.planned : operation.done;
  return (
    <>
      <span className={styles['word']}>{row.status === 'failed' ? failed : done}</span>
      <span className={styles['took']}>
        {row.op === 'same' || isPreview ? '' : took < 1 ? progressRowTexts.underASecond : duration(took)}
      </span>
    </>
  );
}

function Opened({ row }: { readonly row: ResourceRow }) {
  return (
    <div className={styles['opened']}>
      {row.diagnostics.length === 0 ? null : (
        <ul className={styles['said']}>
          {row.diagnostics.slice(0, maxMessages).map(({ message, sequence, severity }) => (
            <li key={sequence} className={styles[severity]}>
              <Colored text={message.trimEnd()} />
            </li>
          ))}
          {row.diagnostics.length > maxMessages ? (
            <li>{errorSummaryTexts.moreUnderMessages(row.diagnostics.length - maxMessages)}</li>
          ) : null}
        </ul>
      )}
      <InputChanges row={row} />
    </div>
  );
}

/** Renders nothing if there are none. */
export function InputChanges({ row }: { readonly row: ResourceRow }) {
  const changes = changesOf(row);
  if (changes === null || changes.paths.length === 0) return null;
  return (
    <>
      <PropertyDiff paths={changes.paths} />
      {changes.isCut ? <p>{progressRowTexts.moreInputsChange}</p> : null}
    </>
  );
}

const maxChanges = 50;
const maxMessages = 100;

function changesOf({ lastStep: step }: ResourceRow) {
  if (step?.old?.inputs === undefined || step.new?.inputs === undefined) return null;
  const { changes, isCut } = diffJson(step.old.inputs, step.new.inputs, maxChanges);
  return { isCut, paths: changes.map(({ after, before, path }) => ({ path, before, after })) };
}
