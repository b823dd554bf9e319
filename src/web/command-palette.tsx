import { Search } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import styles from './command-palette.module.css';
import { listPageActions } from './palette-actions.ts';
import { type Command, searchId, useCommands } from './palette-commands.tsx';
import { paletteTexts } from './platform/app/texts.tsx';
import { CutName } from './platform/ui/cut-name.tsx';
import { Dialog } from './platform/ui/dialog.tsx';
import { positionOf, stepFrom } from './platform/ui/list-choice.ts';

export default function CommandPalette({
  onClose,
  organization,
}: {
  readonly organization: string | undefined;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState<string | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const [actions] = useState(listPageActions);
  const { commands, isAnswered } = useCommands(text.trim(), organization, actions);
  const [isEntered, setIsEntered] = useState(false);
  const ids = commands.map(({ id }) => id);
  const at = positionOf(ids, chosen, 0);
  const run = ({ run }: Command): void => {
    onClose();
    run();
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first entry is the one of the answer.
  useEffect(() => {
    if (!isEntered || !isAnswered) return;
    setIsEntered(false);
    const [first] = commands;
    if (first) run(first);
  }, [isAnswered, isEntered]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selection moves.
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  return (
    <Dialog title={paletteTexts.goTo} position="top" isOpen onClose={onClose}>
      <div className={styles['field']}>
        <Search size={17} aria-hidden="true" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="commands"
          aria-activedescendant={commands[at] ? `command-${at}` : undefined}
          aria-label={paletteTexts.field}
          placeholder={paletteTexts.field}
          value={text}
          maxLength={200}
          spellCheck={false}
          autoComplete="off"
          onChange={({ target }) => {
            setText(target.value);
            setChosen(null);
            setIsEntered(false);
          }}
          onKeyDown={(event) => {
            // The key belongs to an input method.
            if (event.nativeEvent.isComposing) return;
            const step = ({ ArrowDown: 1, ArrowUp: -1 } as const)[event.key];
            const command = commands[at];
            if (step !== undefined) setChosen(stepFrom(ids, at, step));
            else if (event.key !== 'Enter' || !command) return;
            // A stack may still be found.
            else if (command.id === searchId && at === 0 && !isAnswered) setIsEntered(true);
            else run(command);
            event.preventDefault();
          }}
        />
      </div>
      <div ref={list} id="commands" role="listbox" aria-label={paletteTexts.results} className={styles['list']}>
        {commands.map((command, index) => (
          <div
            key={command.id}
            id={`command-${index}`}
            role="option"
            aria-selected={index === at}
            className={styles['option']}
            data-first={command.group === commands[index - 1]?.group ? undefined : command.group}
            onMouseMove={() => setChosen(command.id)}
            onClick={() => run(command)}
          >
            {command.icon}
            <CutName text={command.name} className={styles['name']} />
            {command.group === commands[index - 1]?.group ? null : (
              <span className={styles['group']}>{command.group}</span>
            )}
          </div>
        ))}
      </div>
      {commands.length === 0 ? <p className={styles['none']}>{paletteTexts.noResults}</p> : null}
    </Dialog>
  );
}
