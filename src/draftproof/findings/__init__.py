"""What is wrong, said so that it can be acted on: findings, their rules, the catalogue of ids."""
