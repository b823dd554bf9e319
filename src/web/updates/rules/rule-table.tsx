import { CalendarClock, Snowflake, Sun } from 'lucide-react';
import { type ReactNode, useEffect, useRef } from 'react';
import type { Rule } from '../../platform/app/procedure-types.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { ManagedBadge } from '../../platform/ui/managed-badge.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { describeSettings, describeWindow, type FreezeWindow, nameOfKind } from './rule-labels.ts';
import styles from './rules.module.css';
import { ruleTableTexts } from './texts.tsx';
import { NextWindows } from './window-times.tsx';

interface RuleTableProps {
  readonly items: readonly Rule[] | undefined;
  readonly hasMore: boolean;
  readonly isBusy: boolean;
  readonly onMore: () => void;
  /** The rule that a link has led to. */
  readonly chosen: string | undefined;
  readonly onEdit: (rule: Rule) => void;
  readonly onRemove: (rule: Rule) => void;
  readonly empty: ReactNode;
}

export function RuleTable({ empty, ...list }: RuleTableProps & { readonly label: string }) {
  return (
    <EditableRules
      {...list}
      title={{
        name: ruleTableTexts.rule,
        cell: ({ isManaged, kind }) => <Managed isManaged={isManaged}>{nameOfKind(kind)}</Managed>,
      }}
      columns={[
        { name: ruleTableTexts.appliesTo, cell: ({ scope }) => <span className={styles['scope']}>{scope}</span> },
        {
          name: ruleTableTexts.setting,
          cell: ({ kind, note, settings }) => (
            <div className={styles['says']}>
              {describeSettings(kind, settings)}
              {note === '' ? null : <span className={styles['note']}>{note}</span>}
            </div>
          ),
        },
      ]}
      empty={<div className={styles['none']}>{empty}</div>}
    />
  );
}

function Managed({ children, isManaged }: { readonly children: ReactNode; readonly isManaged: boolean }) {
  return (
    <>
      {children} {isManaged ? <ManagedBadge /> : null}
    </>
  );
}

/** Freezes, with their stacks, end and author. */
export function FreezeTable({ items, ...list }: RuleTableProps) {
  return (
    <EditableRules
      {...list}
      items={items && inOrder(items)}
      label={ruleTableTexts.freezes}
      title={{
        name: ruleTableTexts.appliesTo,
        cell: ({ isManaged, scope }) => (
          <Managed isManaged={isManaged}>
            <span className={styles['scope']}>{scope}</span>
          </Managed>
        ),
      }}
      columns={[
        { name: ruleTableTexts.state, cell: (rule) => <FreezeState rule={rule} /> },
        {
          name: ruleTableTexts.note,
          cell: ({ note }) => (note === '' ? <span className={styles['none']}>{ruleTableTexts.none}</span> : note),
        },
      ]}
      details={({ freeze, settings }) => {
        const windows = settings['windows'] as readonly FreezeWindow[] | undefined;
        if (windows === undefined || freeze === null) return null;
        return (
          <div className={styles['windows']}>
            <ul>
              {windows.map((window) => (
                <li key={JSON.stringify(window)}>{describeWindow(window)}</li>
              ))}
            </ul>
            <NextWindows freeze={freeze} isStateShown={false} />
          </div>
        );
      }}
    />
  );
}

function EditableRules({
  chosen,
  columns,
  onEdit,
  onRemove,
  title,
  ...list
}: RuleTableProps & {
  readonly label: string;
  readonly title: { readonly name: string; readonly cell: (rule: Rule) => ReactNode };
  readonly columns: readonly Column<Rule>[];
  readonly details?: (rule: Rule) => ReactNode;
}) {
  const all: Column<Rule>[] = [
    {
      name: title.name,
      isTitle: true,
      cell: (rule) => (
        <span>
          {title.cell(rule)}
          <ChosenMark rule={rule} chosen={chosen} />
        </span>
      ),
    },
    ...columns,
    { name: ruleTableTexts.setBy, cell: (rule) => <SetBy rule={rule} /> },
    {
      name: ruleTableTexts.actions,
      isActions: true,
      cell: (rule) => {
        const isFreeze = rule.kind === 'freeze';
        const removal = isFreeze ? ruleTableTexts.thaw : ruleTableTexts.remove;
        const name = ruleTableTexts.nameOf(isFreeze, nameOfKind(rule.kind), rule.scope);
        return (
          <span className={styles['buttons']}>
            <Button size="small" kind="quiet" aria-label={ruleTableTexts.editRule(name)} onClick={() => onEdit(rule)}>
              {ruleTableTexts.edit}
            </Button>
            <Button
              size="small"
              kind={isFreeze ? 'plain' : 'quiet'}
              aria-label={`${removal} ${isFreeze ? rule.scope : name}`}
              onClick={() => onRemove(rule)}
            >
              {removal}
            </Button>
          </span>
        );
      },
    },
  ];
  return <Table {...list} columns={all} keyOf={({ id }) => id} />;
}

function SetBy({ rule: { setAt, setBy } }: { readonly rule: Rule }) {
  return <span className={styles['set']}>{ruleTableTexts.setByAt(setBy, <Time at={setAt} />)}</span>;
}

/** A link has led to the rule. */
function ChosenMark({ chosen, rule }: { readonly rule: Rule; readonly chosen: string | undefined }) {
  const mark = useRef<HTMLSpanElement>(null);
  const isChosen = rule.id === chosen;
  useEffect(() => {
    if (isChosen) mark.current?.scrollIntoView({ block: 'center' });
  }, [isChosen]);
  if (!isChosen) return null;
  return (
    <span ref={mark} className={styles['chosen']}>
      <Badge tone="accent">{ruleTableTexts.linkedRule}</Badge>
    </span>
  );
}

/** Active freezes first, then upcoming ones. */
function inOrder(freezes: readonly Rule[]): Rule[] {
  const rank = ({ freeze }: Rule): number => (freeze?.inForce != null ? 0 : freeze?.next.length ? 1 : 2);
  return [...freezes].sort((one, other) => rank(one) - rank(other));
}

function FreezeState({ rule: { freeze, settings } }: { readonly rule: Rule }) {
  const isWaiting = settings['mode'] === 'wait';
  if (freeze?.inForce != null) {
    const { until } = freeze.inForce;
    return (
      <span className={styles['state']}>
        <Badge tone="running" icon={<Snowflake aria-hidden="true" />}>
          {ruleTableTexts.inForce}
        </Badge>
        <span>{ruleTableTexts.ends(until === null ? null : <Time at={until} />, isWaiting)}</span>
      </span>
    );
  }
  const [next] = freeze?.next ?? [];
  if (next === undefined)
    return (
      <Badge tone="neutral" icon={<Sun aria-hidden="true" />}>
        {ruleTableTexts.ended}
      </Badge>
    );
  return (
    <span className={styles['state']}>
      <Badge tone="neutral" icon={<CalendarClock aria-hidden="true" />}>
        {ruleTableTexts.scheduled}
      </Badge>
      <span>{ruleTableTexts.starts(<Time at={next.from} />, isWaiting)}</span>
    </span>
  );
}
