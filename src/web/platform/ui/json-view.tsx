import { ChevronDown, ChevronRight, LockKeyhole } from 'lucide-react';
import { type ReactNode, useMemo } from 'react';
import { type JsonRow, listJsonRows } from './json-tree.ts';
import styles from './json-view.module.css';
import { jsonViewTexts } from './texts.tsx';
import { useToggles } from './toggles.ts';

/** Levels that are initially expanded. */
const openLevels = 2;
const maxRows = 2_000;
const maxCharacters = 2_000;

/** Secrets are redacted. `annotate` returns the note beside a property. */
export function JsonView({
  annotate,
  label,
  renderSecret = () => <Redacted />,
  value,
}: {
  readonly value: unknown;
  readonly label: string;
  readonly annotate?: ((path: string) => ReactNode) | undefined;
  /** Renders the secret at a path. */
  readonly renderSecret?: (row: JsonRow) => ReactNode;
}) {
  const [toggled, toggle] = useToggles<string>();
  const rows = useMemo(
    () => listJsonRows(value, (path, depth) => depth < openLevels !== toggled.has(path), maxRows),
    [value, toggled],
  );
  return (
    <ul className={styles['tree']} aria-label={label}>
      {rows.slice(1).map((row) => (
        <li key={row.path} className={styles['row']} style={{ paddingLeft: (row.depth - 1) * 18 }} title={row.path}>
          <Line row={row} renderSecret={renderSecret} onToggle={() => toggle(row.path)} />
          {annotate === undefined || row.isOpen ? null : <span className={styles['note']}>{annotate(row.path)}</span>}
        </li>
      ))}
      {rows.length === maxRows ? <li className={styles['row']}>{jsonViewTexts.andMore}</li> : null}
    </ul>
  );
}

function Line({
  onToggle,
  renderSecret,
  row,
}: {
  readonly row: JsonRow;
  readonly renderSecret: (row: JsonRow) => ReactNode;
  readonly onToggle: () => void;
}) {
  const isContainer = row.kind === 'object' || row.kind === 'array';
  if (!isContainer || row.childCount === 0) {
    return (
      <>
        <span className={styles['leaf']} />
        <span className={styles['key']}>{row.key}</span>
        {isContainer ? (
          <span className={styles['count']}>{row.kind === 'array' ? '[ ]' : '{ }'}</span>
        ) : (
          <Leaf row={row} renderSecret={renderSecret} />
        )}
      </>
    );
  }

  return (
    <button type="button" className={styles['opener']} aria-expanded={row.isOpen} onClick={onToggle}>
      {row.isOpen ? <ChevronDown size={14} aria-hidden="true" /> : <ChevronRight size={14} aria-hidden="true" />}
      <span className={styles['key']}>{row.key}</span>
      <span className={styles['count']}>
        {row.kind === 'array' ? jsonViewTexts.items(row.childCount) : jsonViewTexts.properties(row.childCount)}
      </span>
    </button>
  );
}

function Leaf({ renderSecret, row }: { readonly row: JsonRow; readonly renderSecret: (row: JsonRow) => ReactNode }) {
  if (row.kind === 'secret') return renderSecret(row);
  const text = row.value ?? '';
  return (
    <span className={`${styles['value']} ${styles[row.kind]}`}>
      {text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text}
    </span>
  );
}

/** Only the CLI shows the value. */
export function Redacted() {
  return (
    <span className={styles['redacted']}>
      <LockKeyhole size={12} aria-hidden="true" />
      {jsonViewTexts.secret}
    </span>
  );
}
