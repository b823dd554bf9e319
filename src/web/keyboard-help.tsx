import styles from './keyboard-help.module.css';
import { Dialog } from './platform/ui/dialog.tsx';

const shortcuts: readonly (readonly [keys: readonly string[], effect: string])[] = [
  [['Ctrl K'], 'Go to a stack or page, or run an action'],
  [['/'], 'Go to the filter of a list'],
  [['j', 'k'], 'Move to the next or previous stack of the list'],
  [['Enter'], 'Open the stack'],
  [['Esc'], 'Close a dialog, or clear the filter'],
  [['?'], 'Show the keyboard shortcuts'],
];

/** The keyboard shortcuts of all pages. */
export default function KeyboardHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" isOpen onClose={onClose}>
      <dl className={styles['keys']}>
        {shortcuts.map(([keys, effect]) => (
          <div key={effect} className={styles['row']}>
            <dt>
              {keys.map((key) => (
                <kbd key={key} className={styles['key']}>
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
