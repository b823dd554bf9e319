import { Command } from 'commander';

/** A command that answers wrong words with a suggestion, its usage in one line, and where to read more. */
export class GuidingCommand extends Command {
  override createCommand(name?: string): GuidingCommand {
    return new GuidingCommand(name);
  }

  override error(...given: Parameters<Command['error']>): never {
    const usage = this.createHelp().commandUsage(this);
    this.showHelpAfterError(`Usage: ${usage}\nMore:  ${namesOf(this).join(' ')} --help`);
    return super.error(...given);
  }
}

/** The words that call a command. */
function namesOf(command: Command): string[] {
  return [...(command.parent ? namesOf(command.parent) : []), command.name()];
}
